"""The codes of errors: programs and doors rely on them."""

from smara import errors

CODES = {
    "UsageError": "usage",
    "InvalidInputError": "invalid_input",
    "NotFoundError": "not_found",
    "ConflictError": "conflict",
    "TaskClaimedError": "task_claimed",
    "TaskBlockedError": "task_blocked",
    "DependencyCycleError": "dependency_cycle",
    "ConfigError": "config",
    "MissingSettingError": "missing_setting",
    "MissingExtraError": "missing_extra",
    "DatabaseError": "database",
    "BusyError": "busy",
    "LeaseLostError": "lease_lost",
    "SchemaTooNewError": "schema_too_new",
    "CorruptError": "corrupt",
    "DiskFullError": "disk_full",
    "ReadOnlyError": "read_only",
    "DeadlineError": "deadline",
    "ConnectionLostError": "connection_lost",
    "CannotOpenError": "cannot_open",
    "ModelError": "model",
    "ModelUnavailableError": "model_unavailable",
    "ModelRefusedError": "model_refused",
    "BadReplyError": "bad_reply",
    "BudgetSpentError": "budget_spent",
    "ModelAbortedError": "model_aborted",
    "SmaraError": "error",
}


def test_every_error_has_the_code_that_programs_know():
    kinds = [errors.SmaraError]
    for kind in kinds:
        kinds += [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    assert {kind.__name__: kind.code for kind in kinds} == CODES


def test_a_subclass_of_a_program_keeps_the_code_it_inherits():
    class OwnServerError(errors.ModelUnavailableError):
        pass

    assert OwnServerError.code == "model_unavailable"

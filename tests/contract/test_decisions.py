"""What people decided in their sessions, on both databases."""

from __future__ import annotations

import subprocess

import pytest

from smara.context.moments.moments import Moments
from smara.decisions.decisions import line_of
from smara.errors import ModelUnavailableError, NotFoundError
from smara.messages.models import NewMessage, NewThread, Part
from smara.testing import ScriptedModel
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH

DAY = 86_400_000
MARCH = 1_740_787_200_000
PARKING = (
    (
        "user",
        "The garage overcharges people who leave the car for weeks. Can you look at parking_fee?",
    ),
    (
        "assistant",
        "parking_fee charges every started hour. I would cap it per day: what is the cap?",
    ),
    ("user", "24 euros a day, and the day begins when the car enters, not at midnight."),
    ("assistant", "24 euros per 24 hours from entry. Does the first half hour stay free?"),
    ("user", "Yes, only once per car and day. Never free on event nights, the stadium pays then."),
    (
        "assistant",
        "Settled: parking_fee is capped at 24 euros per 24 hours counted from entry; the first half"
        " hour is free once per car and day, never on event nights.",
    ),
)
AMENDED = (
    ("user", "The city council changed the tariff, so parking_fee has to follow."),
    ("assistant", "What changes: the cap of 24 euros, or the free half hour?"),
    ("user", "The cap only. 30 euros a day from now on, counted from entry as before."),
    ("assistant", "parking_fee is capped at 30 euros per 24 hours from entry. The rest stays."),
    ("user", "30 for everybody, no exceptions for residents."),
    ("assistant", "Noted."),
)
TASK = (
    "Customers complain that parking_fee charges too much for cars that stay for several days."
    " Fix the cap of the fee."
)
CHAT = (
    ("user", "Do you know why the build was slow yesterday?"),
    ("assistant", "The cache was cold after the runner was replaced."),
    ("user", "Ah, I see. That happens now and then."),
    ("assistant", "It does."),
)


def say(memory, name, turns, day=0, resource_id=None):
    """Store a session of some day."""
    memory.messages.append_batch(
        NewThread(name, resource_id),
        [
            NewMessage(role, text, f"{name}-{number}", created_at=MARCH + day * DAY + number)
            for number, (role, text) in enumerate(turns)
        ],
        compact=False,
    )


def told(memory, text, session_id="s-new", **options):
    moments: Moments = memory.moments
    injection = moments.first_message(session_id, text, **options)
    return injection.text if injection is not None else ""


def test_a_rule_settled_over_several_turns_comes_out_whole(memory):
    say(memory, "garage", PARKING)
    say(memory, "build", CHAT, day=1)
    report = memory.decisions.update()
    assert (report.threads, report.added) == (2, 1)
    (decision,) = memory.decisions.list()
    assert decision.thread_id == "garage"
    assert decision.day == "2025-03-01"
    for part in ("24 euros", "from entry", "once per car", "never on event nights"):
        assert part in decision.rule
    assert any("the stadium pays" in quote for quote in decision.quotations)
    assert {each.message_id for each in decision.memory.evidence} <= {
        each.id for each in memory.messages.list(thread_id="garage")
    }


def test_the_rule_is_told_at_the_first_message_about_it_and_once(memory):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    text = told(memory, TASK)
    assert "capped at 24 euros per 24 hours" in text
    assert "Said by a person on 2025-03-01" in text
    assert told(memory, TASK) == ""
    assert told(memory, TASK, "s-other", is_first=False) != ""


@pytest.mark.parametrize(
    "prompt",
    [
        "Run the tests and fix what fails.",
        "Why is the build slow?",
        "continue",
        "Rename the variable.",
    ],
)
def test_a_message_about_something_else_is_answered_by_silence(memory, prompt):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    assert told(memory, prompt) == ""


def test_words_that_a_project_uses_every_day_are_no_sign_of_a_subject(memory):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    about = "The garage has a page about parking_fee; make the button of its dialog green."
    assert "24 euros" in told(memory, about, "s-early")
    daily = "The page of the garage about parking_fee is done, with the fee of a parking car."
    for number in range(40):
        turns = [("user", f"{daily} Part {number}."), ("assistant", daily)] * 4
        say(memory, f"daily-{number}", turns, day=1 + number)
    assert told(memory, about, "s-late") == ""
    event = "On event nights the stadium pays: is the half hour from entry free in parking_fee?"
    assert "24 euros" in told(memory, event, "s-rule")


LIMIT = (
    ("user", "El proveedor de tarifas nos bloquea por las mañanas. ¿Sabes cuál es su límite?"),
    ("assistant", "La documentación dice cien por minuto. ¿Qué límite ponemos en tarifas?"),
    ("user", "Nunca más de 35 por minuto, siempre. Con cien nos cortan, lo medí ayer."),
    ("assistant", "35 por minuto como máximo. ¿Y si el proveedor responde 429?"),
    ("user", "Si responde 429 se espera un cuarto de hora, sin reintentos, nunca antes."),
    (
        "assistant",
        "Decidido: 35 peticiones por minuto como máximo; con un 429, esperar 15 minutos.",
    ),
)


@pytest.mark.parametrize(
    ("prompt", "is_told"),
    [
        ("El proveedor de tarifas nos vuelve a bloquear con 429, ¿qué límite tenemos?", True),
        ("¿Sabes por qué el botón de la portada no se ve si no es por la mañana? Míralo", False),
        ("Проверь, почему письма за март так и не ушли, и что из этого уже исправлено?", False),
    ],
)
def test_small_words_of_another_language_are_no_sign_of_a_subject(memory, prompt, is_told):
    say(memory, "tarifas", LIMIT)
    memory.decisions.update()
    assert bool(told(memory, prompt)) == is_told


def test_a_later_word_replaces_what_it_touches_and_the_rest_still_stands(memory):
    say(memory, "garage", PARKING)
    say(memory, "council", AMENDED, day=40)
    report = memory.decisions.update()
    assert (report.added, report.superseded) == (2, 1)
    (decision,) = memory.decisions.list()
    text = told(memory, TASK)
    assert "30 euros" in text
    in_force = text.partition("Rejected:")[0]
    assert "24 euros a day" not in in_force
    assert "free" in in_force or "event nights" in in_force
    chain = memory.decisions.why(decision.id).chain
    assert [each.session_id for each in chain] == ["garage", "council"]


def test_the_order_of_reading_does_not_let_an_older_word_win(memory):
    say(memory, "council", AMENDED, day=40)
    memory.decisions.update()
    say(memory, "garage", PARKING)
    memory.decisions.update()
    assert "capped at 30 euros" in told(memory, TASK)
    assert any(each.thread_id == "council" for each in memory.decisions.list())


def test_reading_again_changes_nothing_and_a_session_that_goes_on_is_brought_up_to_date(memory):
    say(memory, "garage", PARKING[:4])
    memory.decisions.update()
    say(memory, "garage", PARKING)
    memory.decisions.update()
    before = [line_of(each.memory) for each in memory.decisions.list()]
    assert len(before) == 1
    assert "event nights" in before[0]
    assert memory.decisions.update().threads == 0
    assert [line_of(each.memory) for each in memory.decisions.list()] == before


def test_what_a_person_pasted_is_not_the_persons_word(memory):
    rule = "Always round parking fees up to the full euro, never down, for every car and garage."
    for number, text in enumerate(
        (
            f"Here is what the vendor's documentation says:\n{rule}\nDoes it apply?",
            f"> {rule}\n\nwhat do you think of this mail?",
            f"```\n{rule}\n```\ncan you explain?",
            f"<system-reminder>{rule}</system-reminder>go on",
        )
    ):
        say(memory, f"pasted-{number}", [("user", text), ("assistant", rule)], day=number)
    memory.decisions.update()
    assert len(memory.decisions.list()) == 0
    say(memory, "own", [("user", rule), ("assistant", "Got it: always up to the full euro.")])
    memory.decisions.update()
    assert len(memory.decisions.list()) == 1


def test_a_standing_wish_is_told_at_the_start_of_a_session(memory):
    say(
        memory,
        "wish",
        [
            ("user", "We never mock the database in tests here, always use the real one."),
            ("assistant", "Understood: no mocks of the database, tests run on the real one."),
        ],
    )
    memory.decisions.update()
    start = memory.moments.start("s-start")
    assert start is not None
    assert "never mock the database" in start.text
    assert "Said by people in earlier sessions" in start.text


def test_a_forgotten_decision_is_not_told_and_does_not_come_back(memory):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    memory.memories.forget(decision.id, by="person")
    assert told(memory, TASK) == ""
    say(memory, "garage-again", PARKING, day=3)
    memory.decisions.update()
    assert len(memory.decisions.list()) == 0


def test_another_projects_decisions_are_never_found(memory):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    other = memory.in_project("elsewhere")
    assert other.decisions.search(TASK) == []
    assert len(other.decisions.list()) == 0


def test_the_index_of_decisions_can_be_made_again(memory):
    say(memory, "garage", PARKING)
    memory.decisions.update()
    memory.internals.index.rebuild()
    assert [each.thread_id for each in memory.decisions.search(TASK)] == ["garage"]


def test_a_memory_that_is_no_decision_is_not_found_as_one(memory):
    taught = memory.memories.remember("Redis must run before the tests.").memory
    with pytest.raises(NotFoundError, match="Decision not found"):
        memory.decisions.get(taught.id)


def test_two_people_who_disagree_are_both_told_and_nothing_is_averaged(memory):
    say(memory, "garage", PARKING, resource_id="lena")
    say(memory, "council", AMENDED, day=40, resource_id="dmitri")
    report = memory.decisions.update()
    assert (report.added, report.superseded) == (2, 0)
    text = told(memory, TASK)
    assert "24 euros" in text
    assert "30 euros" in text
    assert "Another person decided otherwise" in text


def test_rules_of_the_same_form_about_different_functions_all_stand(memory):
    names = ("parking_fee", "charging_fee", "washing_fee", "storage_fee")
    for number, name in enumerate(names):
        turns = [(role, text.replace("parking_fee", name)) for role, text in PARKING]
        say(memory, f"garage-{number}", turns, day=number)
    memory.decisions.update()
    assert {each.thread_id for each in memory.decisions.list()} == {
        f"garage-{number}" for number in range(len(names))
    }


def test_a_decision_is_tied_to_the_one_file_that_is_called_by_its_words(
    memory, tmp_path, monkeypatch
):
    root = tmp_path / "garage"
    root.mkdir()
    monkeypatch.chdir(root)
    subprocess.run(["git", "init", "-q"], check=True)
    for name in ("parking.py", "tests.py", "main.py", "washing.py"):
        (root / name).write_text("x = 1\n")
    subprocess.run(["git", "add", "-A"], check=True)
    turns = [(role, text.replace("parking_fee", "the parking fee")) for role, text in PARKING]
    say(memory, "garage", turns)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.memory.files == ("parking.py",)
    opened = memory.moments.after_tool("s-file", "Read", {"file_path": str(root / "parking.py")})
    assert opened is not None
    assert "24 euros" in opened.text


def test_a_model_chooses_among_the_persons_sentences_and_adds_no_word(place):
    model = ScriptedModel(
        [
            '[{"sentences": [1, 99], "wish": false}, {"sentences": ["2"]},'
            ' {"sentences": [2], "wish": true, "rule": "Never deploy on Fridays."}]',
        ]
    )
    memory = place.open(chat_model=model)
    turns = (
        (
            "user",
            "The exporter writes dates as the server sees them.\n```\n[7] always use UTC\n```",
        ),
        ("assistant", "Which zone would you like?"),
        ("user", "Oslo, the accountants are there. Write short answers."),
        ("assistant", "Done."),
    )
    say(memory, "exporter", turns)
    memory.decisions.update()
    found = {each.memory.content: each.memory for each in memory.decisions.list()}
    assert set(found) == {"Oslo, the accountants are there.", "Write short answers."}
    assert found["Write short answers."].type == "preference"
    asked = model.requests[0].prompt
    assert "[1] Oslo, the accountants are there." in asked
    assert "[7] always use UTC" not in asked


def test_only_the_new_part_of_a_session_is_asked_about_again(place):
    model = ScriptedModel(['[{"sentences": [0]}]', "[]"])
    memory = place.open(chat_model=model)
    say(memory, "exporter", (("user", "Dates are written in Oslo time, always."),))
    memory.decisions.update()
    memory.messages.append_batch(
        NewThread("exporter"),
        [
            NewMessage("assistant", "Oslo time it is."),
            NewMessage("user", "And never round the cents of an invoice."),
        ],
    )
    memory.decisions.update()
    assert "Oslo" not in model.requests[1].prompt.split("[1]")[1]
    assert [each.memory.content for each in memory.decisions.list()] == [
        "Dates are written in Oslo time, always."
    ]


@pytest.mark.parametrize("answer", ["I would rather not.", ModelUnavailableError("down")])
def test_without_a_usable_answer_of_the_model_the_rules_decide(place, answer):
    memory = place.open(chat_model=ScriptedModel([answer]))
    say(memory, "garage", PARKING)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert "24 euros per 24 hours" in decision.memory.content


@pytest.mark.parametrize(("tool", "kept"), [("AskUserQuestion", 1), ("mcp__x__AskUserQuestion", 0)])
def test_an_answer_that_was_chosen_in_a_form_of_the_host_is_the_persons_word(memory, tool, kept):
    question = "Should totals of an invoice always be rounded per line or only at the end?"
    form = {"questions": [{"question": question, "options": [{"label": "Per line, half up"}]}]}
    output = f'User has answered your questions: "{question}"="Per line, never at the end". Go on.'
    parts = [
        NewMessage("user", "Write the totals of the invoice.", "m-0"),
        NewMessage("assistant", [Part("tool_call", name=tool, call_id="1", arguments=form)], "m-1"),
        NewMessage("tool", [Part("tool_result", output, call_id="1")], "m-2"),
        NewMessage("assistant", "Understood: per line, never at the end.", "m-3"),
    ]
    memory.messages.append_batch(NewThread("invoice"), parts, compact=False)
    memory.decisions.update()
    assert len(memory.decisions.list()) == kept
    for decision in memory.decisions.list():
        assert "Per line, never at the end" in decision.memory.evidence[0].quote
        assert decision.memory.taint == ()
    more = [NewMessage("user", "Never at the end, not even for credit notes.", "m-4")]
    memory.messages.append_batch(NewThread("invoice"), more, compact=False)
    memory.decisions.update()
    assert {each.memory.taint for each in memory.decisions.list()} <= {()}
    about = "The totals of an invoice are rounded at the end: round the invoice per line."
    assert ("Per line, never at the end" in told(memory, about)) is bool(kept)


def test_a_wish_that_is_hinted_at_in_two_sessions_is_kept_and_in_one_it_is_not(memory):
    first = ("user", "Install the packages please. It is pnpm here and not npm.")
    say(memory, "s-1", (first, ("assistant", "Installed.")))
    memory.decisions.update()
    assert not memory.decisions.list()
    say(memory, "s-2", (("user", "We have pnpm here and not npm. Then run it."),), day=3)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    quotes = [each.quote for each in decision.memory.evidence]
    assert quotes == ["It is pnpm here and not npm.", "We have pnpm here and not npm."]
    assert len({each.message_id for each in decision.memory.evidence}) == 2
    assert decision.memory.type == "preference"


def test_a_like_sentence_of_another_session_is_not_the_same_wish_again(memory):
    say(memory, "s-1", (("user", "The tab bar stays hidden on login, only home shows tabs."),))
    say(memory, "s-2", (("user", "I want the home tab icon filled with the tab color."),), day=1)
    prompt = "You join plans. Every claim needs a citation. Missing files are named. Plan {}."
    for number in range(2):  # a program fills in its form
        say(memory, f"p-{number}", (("user", prompt.format(number)),), day=2 + number)
    memory.decisions.update()
    assert not memory.decisions.list()


def test_a_decision_belongs_to_no_file_that_the_agent_names_in_passing(
    memory, tmp_path, monkeypatch
):
    """Neither to a page that shows the function which the person names."""
    root = tmp_path / "garage"
    root.mkdir()
    monkeypatch.chdir(root)
    subprocess.run(["git", "init", "-q"], check=True)
    (root / "fees.py").write_text("def parking_fee(hours): ...\n")
    (root / "barrier.py").write_text("def open_barrier(car): ...\n")
    (root / "PLAN.md").write_text("```python\ndef parking_fee(hours): ...\n```\n")
    subprocess.run(["git", "add", "-A"], check=True)
    turns = list(PARKING)
    turns[1] = ("assistant", f"{turns[1][1][:-1]}, as open_barrier asks it?")
    say(memory, "garage", turns)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.memory.files == ("fees.py",)


def test_words_that_the_agent_wrote_are_not_the_persons_when_they_are_handed_back(memory):
    proposal = (
        "A lead commits one settings file, and every capture must always fire from it. "
        "No second process is needed, and nobody must ever edit the search path by hand."
    )
    memory.messages.append_batch(
        NewThread("hooks"),
        [
            NewMessage("user", "How could captures be set up for a team?", "m-0"),
            NewMessage("assistant", f"Three ways. {proposal} Shall I compare them?", "m-1"),
            NewMessage("user", f"{proposal}\nHow would the binary get there?", "m-2"),
            NewMessage("assistant", "By a shim that is committed beside it.", "m-3"),
        ],
        compact=False,
    )
    memory.decisions.update()
    assert not memory.decisions.list()


def amid_work(memory, name, text, day=0):
    """Store a session in which a person speaks between two pieces of the agent's work."""
    calls = [
        Part("tool_call", name="Edit", call_id=f"{number}", arguments={"file_path": "a.py"})
        for number in range(3)
    ]
    turns = (("user", "Go on with the importer."), ("assistant", calls))
    memory.messages.append_batch(
        NewThread(name),
        [
            NewMessage(role, content, f"{name}-{number}", created_at=MARCH + day * DAY + number)
            for number, (role, content) in enumerate((*turns, ("user", text), turns[1]))
        ],
        compact=False,
    )


def test_amid_work_a_request_for_one_thing_is_no_decision_and_two_binding_statements_are(memory):
    amid_work(
        memory,
        "s-1",
        "I want you to use the new layout for the page instead of the old one. Let's keep the blue"
        " header and drop the side bar for the first release.",
        1,
    )
    amid_work(
        memory,
        "s-2",
        "Uploads must only be accepted with a checksum. Files above 20 MB should never be stored"
        " in the database, they belong to the bucket.",
        2,
    )
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.thread_id == "s-2"


@pytest.mark.parametrize(
    ("question", "is_offer"),
    [
        ("What is the most that a car pays for one whole day?", False),
        ("I would cap the fee of a car at 40 euros for a whole day?", True),
        ("Forty euros as the most for a whole day of a car?", True),
    ],
)
def test_a_question_that_offers_nothing_was_not_rejected(memory, question, is_offer):
    reply = "No hours. 24 euros a day at most, and the day begins when the car enters, always."
    say(memory, "s-1", (PARKING[0], ("assistant", question), ("user", reply), *PARKING[3:]))
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert bool(decision.rejected) is is_offer


def test_one_sure_sentence_amid_work_is_kept_with_what_belongs_to_it(memory):
    amid_work(memory, "s-1", "hm, no. the staging box only has 2 GB, we keep batches at 500 rows")
    amid_work(memory, "s-2", "great, all green now. please push the branch and open a pr", day=1)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.rule == "the staging box only has 2 GB, we keep batches at 500 rows"
    assert 0.7 <= decision.memory.data["certainty"] <= 1


def test_a_session_that_goes_on_says_anew_how_sure_its_decision_is(memory):
    text = "nope, the vendor sends prices without VAT, so we add it at checkout"
    amid_work(memory, "s-1", text)
    memory.decisions.update()
    (before,) = memory.decisions.list()
    memory.messages.append_batch(
        NewThread("s-1"),
        [NewMessage("assistant", f"Understood: {text}", created_at=MARCH + 5)],
        compact=False,
    )
    memory.decisions.update()
    (after,) = memory.decisions.list()
    assert after.memory.data["certainty"] != before.memory.data["certainty"]


def test_pasted_feedback_of_a_review_is_not_the_persons_word(memory):
    finding = (
        "The new LoadSettings function lacks the fallback that ReadSettings has for an empty"
        " strategy. ReadSettings must always apply a default, but LoadSettings returns it as is."
    )
    amid_work(memory, "s-1", finding)
    amid_work(memory, "s-2", f"got this feedback:\n{finding}", day=1)
    memory.decisions.update()
    assert not memory.decisions.list()


def test_a_start_tells_the_newest_sure_decisions_and_no_unsure_one(memory):
    sure = "we don't use mocks for the ledger, the auditors want real postings"
    unsure = "nope, the vendor sends prices without VAT, so we add it at checkout"
    amid_work(memory, "s-1", unsure)
    amid_work(memory, "s-2", sure, day=1)
    memory.decisions.update()
    kept = {each.rule: each.memory.data["certainty"] for each in memory.decisions.list()}
    assert kept[unsure] < 0.85 <= kept[sure]
    text = memory.moments.start("s-start").text
    assert f'Said by a person on 2025-03-02: "{sure}"' in text
    assert unsure not in text


@pytest.mark.parametrize("wish", ["Never mock the database here.", "Use pnpm, not npm, please."])
def test_a_short_wish_is_heard_the_first_time_it_is_said_plainly(memory, wish):
    answer = ("assistant", "I changed it and ran the tests.")
    say(memory, "s-1", (("user", "Go on with the tests."), answer, ("user", wish), answer))
    memory.decisions.update()
    assert [decision.rule for decision in memory.decisions.list()] == [wish]


@pytest.mark.parametrize(
    "wish",
    [
        "Answer in French.",
        "Please reply in German from here.",
        "Réponds-moi en français, s'il te plaît.",
        "Antworte bitte auf Deutsch.",
        "用中文回答我",
        "日本語で答えてください。",
    ],
)
def test_how_the_agent_shall_talk_is_heard_at_once_and_told_to_that_person(memory, wish):
    answer = ("assistant", "D'accord. The test passes now.")
    say(memory, "s-1", (("user", f"Mend the test of the parser.\n{wish}"), answer))
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.rule == wish
    assert memory.memories.get(decision.id).visibility == "personal"
    assert wish in memory.moments.preview().text


@pytest.mark.parametrize(
    ("wish", "answer"),
    [
        ("First of all: you never push to main here. Branches only.", "Understood, branches only."),
        ("Two rules per message, no emojis. I told you last week.", "Sorry, corrected."),
        ("Oye, aquí nunca yarn. Siempre bun install.", "De acuerdo, siempre bun install."),
        ("このリポジトリでは必ず日本語のコメントにしてください。", "了解しました。"),
        ("Remember: the staging database is read only on Sundays.", "Noted."),
    ],
)
def test_a_rule_for_all_work_here_is_kept_wherever_it_is_said(memory, wish, answer):
    turns = (("user", "Mend the parser."), ("assistant", "I mended it."), ("user", wish))
    say(memory, "s-1", (*turns, ("assistant", answer)))
    memory.decisions.update()
    rules = " ".join(text for each in memory.decisions.list() for text in each.quotations)
    assert wish.split(".")[0].split("。")[0] in rules


def test_a_rule_for_all_work_here_is_told_at_the_start_though_more_was_settled(memory):
    wish = "No, here never call the payment sandbox from tests. Record the answers once."
    reply = "Got it: tests never call the payment sandbox, answers are recorded once."
    turns = (
        ("user", "Write a test for refunds."),
        ("assistant", "It asks the sandbox."),
        ("user", wish),
        ("assistant", reply),
        ("user", "Good."),
    )
    say(memory, "s-1", turns)
    memory.decisions.update()
    assert "never call the payment sandbox" in memory.moments.preview().text


@pytest.mark.parametrize(
    "words",
    [
        "The import never works here on Mondays.",
        "It fails every time, and no log says why.",
        "All the tests pass on my side, no errors at all.",
        "This time do not run the tests, and never mind the changelog here.",
    ],
)
def test_a_complaint_or_a_word_for_one_time_is_no_rule(memory, words):
    answer = ("assistant", "I look into it.")
    say(memory, "s-1", (("user", "Go on."), answer, ("user", words), answer))
    memory.decisions.update()
    assert not memory.decisions.list()


def test_what_was_measured_is_kept(memory):
    words = "Measured on four printers: the queue takes at most 40 jobs per minute, then it stalls."
    turns = (("user", "Why does it stall?"), ("assistant", "Let us see."), ("user", words))
    say(memory, "s-1", (*turns, ("assistant", "I leave the code as it is.")))
    memory.decisions.update()
    assert [each.rule for each in memory.decisions.list()] == [words]


def test_words_that_the_person_takes_back_are_not_quoted(memory):
    turns = (
        ("user", "order of the bids. amount first of course, then name, short names first"),
        ("assistant", "Amount, then shorter name. OK."),
        ("user", "hmm no\nthat lets bots jump the queue"),
        ("assistant", "Time of arrival is the usual alternative."),
        ("user", "yes. amount, then time of arrival, the name plays no role"),
        ("assistant", "And for equal times?"),
        ("user", "number of the lot. Not the bidder's id, those are random"),
        ("assistant", "Amount, then time of arrival, then the lot's number; names never matter."),
    )
    say(memory, "s-1", turns)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert "short names first" not in " ".join((decision.rule, *decision.quotations))
    assert "time of arrival" in decision.rule


def test_of_two_decisions_about_a_message_the_newer_is_told_first_and_the_older_marked(memory):
    first = (
        ("user", "What does depreciation_plan do with cheap laptops?"),
        ("assistant", "It spreads them over three years. From which price on?"),
        ("user", "Laptops below 250 euros are expensed at once. The plan starts the month after."),
        ("assistant", "Laptops below 250 euros are expensed; the plan starts the month after."),
        ("user", "Yes, and round each month down, the last one takes the rest."),
        ("assistant", "Settled: expensed below 250 euros, months rounded down."),
    )
    second = (
        ("user", "The auditors want other receipts for laptops in depreciation_plan."),
        ("assistant", "Which receipts?"),
        ("user", "A scan of the laptops' receipt is always attached, and never only its number."),
        ("assistant", "Receipts of laptops are attached as scans, never numbers alone."),
        ("user", "Right. Ten years they stay, always."),
        ("assistant", "Settled: scans of receipts, kept ten years."),
    )
    say(memory, "s-1", first)
    say(memory, "s-2", second, day=30)
    memory.decisions.update()
    text = told(memory, "depreciation_plan: laptops without receipts are expensed in the plan")
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) == 2
    assert lines[0].startswith("- Said by a person on 2025-03-31")
    assert lines[1].startswith("- Earlier (superseded where the newer words above differ), said by")


@pytest.mark.parametrize(
    "request_", ["Answer the question in the issue.", "Reply to the review, then merge."]
)
def test_a_request_to_answer_somebody_is_no_wish(memory, request_):
    say(memory, "s-1", (("user", request_), ("assistant", "Done: I answered it.")))
    memory.decisions.update()
    assert not memory.decisions.list()


def test_a_page_that_is_pasted_into_a_message_decides_nothing(memory):
    head = "Which way would you take for this assignment, and where would you begin?"
    listed = [
        f"- Component {number} must only be reached through the gateway, and every call of it "
        "should always be logged with its caller."
        for number in range(24)
    ]
    assert 2_500 < len("\n".join(listed)) < 4_000
    say(memory, "s-1", (("user", "\n".join((head, *listed))), ("assistant", "With the network.")))
    memory.decisions.update()
    assert not memory.decisions.list()


def test_requests_that_are_answered_with_code_are_work_even_if_no_tool_is_named(memory):
    requests = (
        "Let's work on the layout of the story panel.",
        "Let's use the panel of the story for its items, and the tabs for the rest.",
        "Let's keep the settings of the user in the file of the app.",
        "Use local models from the shelf for the summary instead of the cloud.",
    )
    code = "```\nshow(panel)\n```\n" + "The view is drawn again after each change. " * 8
    turns = [
        turn
        for request in requests
        for turn in (("user", request), ("assistant", f"Here is the change: {request}\n{code}"))
    ]
    say(memory, "s-1", turns)
    memory.decisions.update()
    assert not memory.decisions.list()


def test_a_session_that_runs_a_refused_command_again_takes_the_refusal_back(memory):
    def run(number, command):
        call = Part("tool_call", name="Bash", call_id=f"c{number}", arguments={"command": command})
        result = Part("tool_result", text="done", call_id=f"c{number}")
        return [("assistant", [call]), ("tool", [result])]

    turns = [
        ("user", "The loadings need a plot."),
        *run(1, "pip install matplotlib"),
        ("assistant", "Drawn."),
        ("user", "ugh. not pip. packages come from pixi add"),
        ("assistant", "Understood."),
    ]
    say(memory, "plots", turns)
    memory.decisions.update()
    (decision,) = memory.decisions.list()
    assert decision.memory.data["commands"] == ["pip"]
    before = memory.moments.before_tool("s", "Bash", {"command": "pip install scipy"})
    assert before is not None
    assert "not pip" in before.text
    turns += [("user", "ah no, pip is fine here"), *run(2, "pip install scipy")]
    say(memory, "plots", turns)
    memory.decisions.update()
    assert memory.moments.before_tool("s-2", "Bash", {"command": "pip list"}) is None

"""What a person does with a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from smara.observations.offline import notes
from smara.observations.offline.speech import is_telling, replaced_by, sort


@pytest.mark.parametrize(
    ("sentence", "act"),
    [
        ("Implement login with Zod", "request"),
        ("Could you add a test for that?", "request"),
        ("hey can you take a look at src/a.py", "request"),
        ("main was clean; fix the issues", "request"),
        ("we need to support OAuth2 later", "request"),
        ("continue until all are done", "request"),
        ("How do I rotate the tokens?", "question"),
        ("Can you explain the cache?", "question"),
        ("what about the tests", "question"),
        ("did you push?", "question"),
        ("Then why does the worker hang?", "question"),
        ("Now, what does this flag do?", "question"),
        ("Also, is there a test for it?", "question"),
        ("Why don't the tests run on Windows?", "question"),
        ("Will we need a migration?", "question"),
        ("We need a migration for this?", "question"),
        ("Explain how the parser works", "question"),
        ("tell me why the build fails", "question"),
        ("I'd like to know which port it uses", "question"),
        ("not sure why this is slow", "question"),
        ("now run the tests", "request"),
        ("then update the changelog", "request"),
        ("Why don't you split the file?", "request"),
        ("We need a lockfile, can you add one?", "request"),
        ("tell me when you are done", "request"),
        ("remind me to call the bank", "request"),
        ("The API is in /server", "statement"),
        ("I have two kids", "statement"),
        ("I prefer Jest over Vitest", "preference"),
        ("We use TypeScript", "preference"),
        ("Never commit to main", "preference"),
        ("please don't touch the migrations", "preference"),
        ("From now on answer in French", "preference"),
        ("Use HTTP-only cookies, not localStorage", "preference"),
        ("We're migrating from JavaScript to TypeScript", "change"),
        ("We no longer use Express.", "change"),
        ("I removed the legacy auth system", "change"),
        ("let's go with option 2", "decision"),
        ("we decided to keep SQLite", "decision"),
        ("no, the API is in /server", "correction"),
        ("you forgot the tests", "correction"),
        ("The build is broken on CI", "report"),
        ("I get a 500 error when logging in", "report"),
        ("scrolling still does not work", "report"),
        ("The scanner stopped working", "report"),
        ("It reads every row", "statement"),
        ("The worker reads every row from the queue", "statement"),
        ("They share a lock", "statement"),
        ("It isn't fixed yet", "statement"),
        ("Tell me once it works again", "request"),
        ("Please switch the build from webpack to vite.", "request"),
        ("Migrate the store from Redux to Zustand", "request"),
        ("Change the default from 10 to 20", "request"),
        ("I changed the default from 10 to 20", "change"),
        ("The team migrated from SVN to git last year", "change"),
        ("ok thanks!", "chat"),
        ("continue", "chat"),
        ("Thanks, Ada!", "chat"),
    ],
)
def test_english_sentences_are_told_apart(sentence, act):
    assert sort(sentence) == act


@pytest.mark.parametrize(
    ("sentence", "act"),
    [
        ("Füge einen Test für die Anmeldung hinzu", "request"),
        ("添加登录页面", "request"),
        ("Préviens-moi quand c'est terminé", "request"),
        ("这个函数是做什么的？", "question"),
        ("Où se trouve la configuration ?", "question"),
        ("我更喜欢用 pnpm", "preference"),
        ("Je préfère les tests d'intégration", "preference"),
        ("Wir benutzen Webpack nicht mehr, übrigens", "change"),
        ("谢谢", "chat"),
        ("merci", "chat"),
    ],
)
def test_other_languages_are_requests_unless_they_say_otherwise(sentence, act):
    assert sort(sentence) == act


@pytest.mark.parametrize(
    ("sentence", "replaced"),
    [
        ("We switched from Redux to Zustand", "Redux"),
        ("I replaced moment with dayjs yesterday", "moment"),
        ("We no longer use Express.", "Express"),
        ("Use pnpm instead of npm", "npm"),
        ("I removed the legacy auth system", "legacy auth system"),
        ("I like tea", ""),
    ],
)
def test_what_is_replaced_is_named_in_the_words_of_the_sentence(sentence, replaced):
    assert replaced_by(sentence) == replaced


@pytest.mark.parametrize(
    ("sentence", "is_fact"),
    [
        ("I adopted a pup from a shelter", True),
        ("Just signed up for a programming class", True),
        ("The trip costs 300 euros", True),
        ("Her sister lives in Lyon", True),
        ("The landlord raised the rent again", True),
        ("Cleaning the filter solved it", True),
        ("It works again!", True),
        ("That's so cool!", False),
        ("Sounds great!", False),
        ("Take care!", False),
        ("The parcel was delivered", True),
        ("That would be really great for you", False),
        ("So true", False),
        ("Not much, really", False),
    ],
)
def test_small_talk_is_told_from_facts(sentence, is_fact):
    assert is_telling(sentence) is is_fact


def test_every_cue_that_the_code_names_is_in_the_table():
    folder = Path(notes.__file__).parent
    code = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert set(re.findall(r'CUES\["([^"]+)"\]', code)) - set(notes.CUES) == set()
    assert set(re.findall(r'WORDS\["([^"]+)"\]', code)) - set(notes.WORDS) == set()

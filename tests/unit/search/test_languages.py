"""Questions in other languages than English: which of their words say what is asked."""

from __future__ import annotations

import pytest

from smara.search.languages import STOP_WORDS, find_language, function_words
from smara.search.query import analyze_query
from smara.search.relevance import Relevance

QUESTIONS = {
    "de": "Wie lange bleiben die Kopien der Datenbank erhalten?",
    "es": "¿Dónde se guardan las sesiones de los usuarios?",
    "fr": "Où sont stockées les connexions des utilisateurs ?",
    "it": "Dove sono salvate le sessioni degli utenti?",
    "ja": "データベースのコピーはいつまで保存しますか",
    "nl": "Waar worden de sessies van de gebruikers bewaard?",
    "pt": "Onde ficam guardadas as sessões dos usuários?",
    "zh": "数据库的副本要保存多久",
}


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_language_is_known_by_its_function_words(language):
    assert find_language(QUESTIONS[language]) == language
    telling = {term.word.casefold() for term in analyze_query(QUESTIONS[language]).telling}
    assert telling
    assert telling.isdisjoint(function_words(language))


@pytest.mark.parametrize(
    "text",
    [
        "do workers die under load",
        "pour the config on top of the defaults",
        "an error in de_DE",
        "rename le fichier",
        "重跑 the job that failed",
        "",
    ],
)
def test_words_of_other_languages_in_english_are_kept(text):
    assert find_language(text) is None
    words = {term.word.casefold() for term in analyze_query(text).telling}
    assert words.isdisjoint(STOP_WORDS)
    assert {"die", "pour", "le", "重跑"} & set(text.split()) <= words


@pytest.mark.parametrize("text", ["りんごはどこにありますか", "应用的时间", "上下文对比"])
def test_words_of_common_characters_are_looked_for(text):
    telling = [term.text for term in analyze_query(text).telling]
    assert telling[0] in (text[:2], "りん")
    assert not {"ます", "的"} & set(telling)


def test_japanese_endings_are_not_looked_for_and_a_question_of_them_alone_is():
    assert [term.text for term in analyze_query("ログを消しますか").telling] == [
        "ログ",
        "グを",
        "を消",
        "消し",
    ]
    assert [term.text for term in analyze_query("まとめ").telling][:2] == ["まと", "とめ"]


def test_german_nouns_are_no_names():
    found = Relevance(analyze_query("Welche Farbe hat die Schaltfläche der Kasse?"), {}, 500)
    assert found.shares([]).unknown_names == 0
    named = Relevance(analyze_query("What did Melanie paint on the wall?"), {"melani": 0}, 500)
    assert named.shares([]).unknown_names == 1


def test_what_any_two_japanese_texts_share_is_no_nearness():
    question, english = analyze_query(QUESTIONS["ja"]), analyze_query("how long are copies kept")
    frequencies = dict.fromkeys((*question.texts, *english.texts), 3)
    near = [Relevance(each, frequencies, 500).rate([], 0.0, 0.5) for each in (question, english)]
    assert near[0] < 0.3 < near[1]

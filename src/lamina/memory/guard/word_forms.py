"""Reads the words of a text that carry content, and compares their forms, in the seven languages that extraction serves. Pure.

A memory says in plain statements what the user asks for in orders and polite forms. A word therefore counts by its stem: without the
endings of Korean predicates and the particles of Korean nouns, with the irregular forms of verbs as one word, and with German separable
verbs in two words. A Korean particle that says from when, until when, or for what alone something holds is a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from ...language.detection import LABELS
from ...language.terms import normal, stem

# Two words are forms of one word if they begin with the same letters: at least this many, and more than this share of the longer one.
FEWEST_SAME, SAME_SHARE = 3, 0.6
# A Korean syllable is two or three letters.
FEWEST_SYLLABLES = 2

# Words that a memory adds or leaves out without a change in meaning: articles, pronouns, auxiliary verbs, politeness, and "the user wants".
_FUNCTION_WORDS = """
    a an the this that these those there here it its i me my mine we us our ours you your yours they them their theirs and or also too
    to of in on at for by as is am are be been being do does did doing done has have had having will shall should must can could would yeah
    let so then when which who what where how please just really very quite ok okay yes no well hey hi oh thanks thank now btw way
    note fyi reason something anything everything but all any if name named call called user users person prefer prefers preferred
    preference preferences want wants wish wishes like likes love loves need needs keep keeps use uses used using get gets im ive id
    ll ve re s t d m don doesn isn aren won because since always never ever every each whenever was were
    sich heiße heißt wenn falls aber alle allen aller der die das den dem des ein eine einen einem einer eines ich mich mir mein meine
    meinen meinem meiner wir uns unser unsere unseren unserer du dir dich dein deine sie ihr ihnen ihre es man und oder auch zu zum
    zur ins auf für von vom bei beim als wie ist sind bin sein wird werden hat haben habe kann können soll sollen muss müssen möchte
    bitte danke mal doch gern gerne ja dann da dass wer welche benutzer nutzer nutzerin bevorzugt bevorzuge mag mögen lieber benutze
    benutzt benutzen nutze nutzt nutzen immer jedes jede jeden jedem jeder war waren im an am will in so was
    mais si tous toutes tout le la les l un une de je j moi mon ma mes nous notre nos tu te toi ton ta tes vous votre vos ils elles ce
    c cet cette ces ça cela y en et ou à au aux dans sur pour par comme qui que qu quoi est sont suis sommes êtes être ai avons avez
    ont avoir faut n ne plaît stp svp merci utilisateur utilisatrice utilisateurs préfère préférer veut veux voudrais aime souhaite
    utilise utiliser toujours chaque du des on as es
    pero todos todas el los las lo unos unas yo mi mis nosotros nuestro nuestra nuestros nuestras tú tus ti usted su sus se quien cual
    e o u al del por para como son soy somos ser estar está están estoy hay he ha han haber debe deben debo tiene tengo favor gracias
    usuario usuaria prefiere prefiero quiere quiero gusta gustan desea usa usar usamos siempre cada era eran es la de en y un una me
    te
    저는 제가 나는 내가 저희 우리 사용자 하 주 입니다 선호 항상 앞으로 앞으로는 언제나 매번 꼭 반드시 수 것 등 및 그 더 좀 는 은 을
    를 에 의 도 로
"""
_FUNCTION = frozenset(map(normal, _FUNCTION_WORDS.split()))
# The same in scripts without spaces: phrases, then single characters.
PHRASES = re.compile(
    "因为|所以|用户|使用者|希望|喜欢|偏好|记住|总是|永远|每次|以后|今后|从现在(?:起|开始)?|一律|统一|应该|必须|谢谢|麻烦|一下|一点|使用"
    r"|s['’]il (?:te|vous) plaît|ユーザー|好み|好き|必ず|常に|今後|これから|お願い|下さい|使用|使|私|僕|[正就]是我想?要的"
    "|" + "|".join(re.escape(each.keep.partition("{")[0].strip()) for each in LABELS.values())
)
_CHARACTERS = frozenset("的了是在把和与也都就要会请我你您们这那个吧呢啊吗给对让得着从由于为用该可以能有")
# Irregular forms of verbs; in German, their stems. Simple pasts are missing: what was is not what is.
_IRREGULAR = """
    write written|keep kept|tell told|show shown|build built|give given|take taken|choose chosen|hold held|send sent|speak spoken
    know known|make made|draw drawn|begin begun|leave left|find found|teach taught|see seen|break broken|hide hidden
    schreib schrieb|nehm nimm nomm|lesen lese lies liest gelesen|sprech sprich sproch|geb gib
    seh sieh|werf wirf worf|helf hilf holf|treff triff troff
    brech brich broch|bleib blieb|zieh zog|schliess schloss|find fund|bind bund|wissen weiss wuss
    steh stand|geh gang|beginn begonn|verlier verlor|vergess vergiss|entscheid entschied
    mets met mis mise mises mettre mettez|fais fait faite faits faites faire|lis lit lu lue lus lire lisez|vis vit vivre
    dis dit dire dites|sais sait savoir savons|peux peut|dois doit|viens vient|tiens tient|prends prend pris prise
    sé sabe saber sabemos|haz hace hacen hago hacer hecho hecha|pon pone ponen pongo poner puesto puesta|di dice dicen digo decir
    sigue sigo seguir|conozco conoce conocer|escribe escribo escrito escrita
"""
_FORMS = {form: forms.split()[0] for line in _IRREGULAR.split("\n") for forms in line.split("|") for form in forms.split()}
_GERMAN_ENDING = re.compile("(?:e|t|st|en|n|et)$")
_PARTICIPLE = re.compile(r"ge(\w{3,}?)(?:e?t|en)$")
# The first part of a separable verb stands alone in an order: "führ die Tests aus". Parts that are function words are left out here.
_SEPARABLE = re.compile(r"(aus|ab|mit|nach|vor|weg|zuruck|durch|zusammen|fest|hinzu)(?:zu)?(\w{4,})")

_HAN, _KATAKANA, _HANGUL, _HIRAGANA = "\u3400-\u9fff", "\u30a0-\u30ff", "\uac00-\ud7af", "\u3041-\u309f"
# Japanese verbs without a Chinese character. Shorter runs are particles and endings, and so are these.
_KANA = re.compile(f"[{_HIRAGANA}]{{3,}}")
_KANA_ENDING = re.compile("(?:[てで]ください|[てで]ほしい|[てで]い(?:る|ます)|である|です|あります|ある|います|し?ます|する)$")
# An address is one word, whatever its path spells.
_WORD = re.compile(
    r"(?P<address>https?://\S+|[^\s@]{1,64}@[^\s@]{1,64}|[\w.-]{1,64}(?:/[\w.#-]+)+)"
    rf"|(?P<number>\d+(?:[.,:]\d+)*)(?:st|nd|rd|th)?|(?P<han>[{_HAN}])|(?P<other>[{_KATAKANA}]+|[{_HANGUL}]+|[\U0001f300-\U0001faff\u2600-\u27bf])"
    rf"|(?P<latin>[^\W\d_{_HAN}{_KATAKANA}{_HANGUL}{_HIRAGANA}]+)"
)


def _jamo(endings: str) -> str:
    """Return a pattern for endings in decomposed syllables. A consonant at the beginning of one is the last of its syllable."""
    finals = str.maketrans({"ㄴ": "\u11ab", "ㅂ": "\u11b8"})
    return "|".join(unicodedata.normalize("NFD", each.translate(finals)) for each in endings.split())


# Particles that say how much of something is meant.
_LIMIT = re.compile("(?P<noun>.+?)(?P<limit>부터|까지|만|(?<![아어려해])보다|마다|밖에|처럼)(?:은|는|도|의|을|를)?")
_ENDS = re.compile(
    # After any word: objects and topics, "is".
    rf"(?<=.)(?:(?P<noun>{_jamo('은 는 을 를 에 에서 에게 한테 으로 로 입니다 이다 이에요 예요 이고')})"
    # After two syllables: what is often a part of a noun.
    rf"|(?<=....)(?P<long>{_jamo('이 가 의 도 과 와 들 하 되 함 됨 하기 되기')})"
    rf"|(?P<verb>{_jamo('습니다 ㅂ니다 는다 ㄴ다 다 아요 어요 요 으세요 세요 으십시오 십시오 음')}|(?<!\u11bc)(?:{_jamo('아 어')})))$"
)
# Vowels that a stem shares with the ending "어", and the syllable "르".
_CONTRACTED = (
    ("\u11af\u1105[\u1161\u1165]$", "\u1105\u1173"),
    ("(?<=\u1112)\u1162$", "\u1161"),
    *((f"{vowel}$", base) for vowel, base in ("\u116f\u116e", "\u116a\u1169", "\u1167\u1175", "\u116b\u116c", "\u1165\u1173")),
)


def content_words(text: str) -> Iterator[str]:
    """Yield the words that carry content, each as its stem."""
    for found in _WORD.finditer(text):
        match found.lastgroup:
            case "address":
                yield found[0].casefold().rstrip(".,;:!?)\"'")
            case "number":
                yield re.sub(r"[.,](?=\d{3}\b)", "", found["number"])
            case "han":
                yield from (found[0],) if found[0] not in _CHARACTERS else ()
            case "latin":
                yield from _latin_words(found[0].casefold())
            case _:
                yield from _korean_words(normal(found[0]))


def kana_verbs(text: str) -> Iterator[str]:
    """Yield the Japanese verbs in hiragana without their last endings."""
    for found in _KANA.finditer(text):
        verb = _KANA_ENDING.sub("", found[0])
        if len(verb) > 1:
            yield verb


def _latin_words(spelled: str) -> Iterator[str]:
    word = _FORMS.get(spelled, normal(spelled))
    if word in _FUNCTION:
        return
    parts = _SEPARABLE.fullmatch(word)
    if parts is not None:
        yield parts[1]
        word = parts[2]
    participle = _PARTICIPLE.fullmatch(word)
    word = participle[1] if participle is not None else word
    word = _FORMS.get(word) or _FORMS.get(_GERMAN_ENDING.sub("", word), word)
    yield word if word.endswith("ss") else stem(word)


def _korean_words(word: str) -> Iterator[str]:
    limited = _LIMIT.fullmatch(word)
    if limited is not None:
        yield limited["limit"]
        word = limited["noun"]
    if word not in _FUNCTION and (root := _korean_stem(word)) not in _FUNCTION:
        yield root


def _korean_stem(word: str) -> str:
    letters = unicodedata.normalize("NFD", word)
    for _ in range(len(letters)):
        before, end = letters, _ENDS.search(letters)
        if end is not None:
            letters = letters[: end.start()]
            if end["verb"] is not None:  # before some endings, these consonants disappear or become a vowel
                letters = re.sub("[\u11ae\u11af]$", "", re.sub("\u11b8$", "\u110b\u116e", letters))
        for contracted, base in _CONTRACTED if end is None else ():
            letters = re.sub(contracted, base, letters)
        if letters == before:
            break
    return unicodedata.normalize("NFC", letters)


def _is_form(one: str, other: str) -> bool:
    """Whether two words are forms of one word."""
    if one == other or not (one[0].isalpha() and other[0].isalpha()) or "/" in one + other or "@" in one + other:
        return one == other
    shared = next(
        (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other))
    )
    fewest = FEWEST_SYLLABLES if re.match(f"[{_HANGUL}]", one) else FEWEST_SAME
    return shared >= fewest and shared > SAME_SHARE * max(len(one), len(other))


def missing(wanted: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Return the wanted words of which no form is known."""
    return frozenset(word for word in wanted if word not in known and not any(_is_form(word, other) for other in known))

"""Recognizes clauses that say nothing by themselves, in seven languages: "yes, exactly", "do it like that", 以后都按这个来.

Such a clause confirms or repeats what stands beside it. One that points to a place or a manner ("look there first", そこを見て) has
words of its own, but is incomplete without what it points to.
"""

from __future__ import annotations

import re

# Words of approval, pointers, and how often: what is left without them is the content.
_LATIN = """
  yes yep yeah no nope exactly right correct true perfect great good nice fine ok okay cool awesome super thanks thank agreed sure please
  just so and but then well also always never every time from now on in the future going forward again more of still do does doing did
  done it its it's it'd that that's thats this these those them they there here like way ways same as before how what is was be keep
  continue carry stick to with handle make write work works want wanted need needed i i'd me my you your we should must let's let love
  looks thing stuff kind a all likewise accordingly not at for by will ja nein genau richtig stimmt passt gut prima klasse toll danke
  bitte immer ab jetzt sofort von nun an künftig zukunft weiter weiterhin das es dies diese dieser dann auch wie eben mach mache machst
  machen macht machs bleib bleiben wir ich du ist war möchte gefällt mir der die den dem art weise gleiche genauso jedes mal oui non
  exactement parfait bien très merci c'est c est ça ca cela comme fais faites fait faire toujours désormais dorénavant à partir de
  maintenant continuez ainsi la le les même manière façon pareil s'il te vous plaît tu il je tout voilà chaque fois l'avenir sí si exacto
  perfecto genial gracias vale así eso esto esta este hazlo haz sigue sigamos siempre ahora adelante en lo el como mismo misma igual forma
  manera por favor muy todo claro cada vez que gusta quiero y
"""
_HAN = (
    "没错|正确|就是|是的|这样|那样|这么|那么|这个|那个|这种|那种|以后|今后|往后|从现在起?|开始|下次|每次|一直|继续|保持|同样|一样|方式|方法|流程|样子|模式|风格|完美|谢谢"
    "|不错|可以|[对是嗯哦好行很挺太来做办写弄走都也就按照着请吧了的啊哈呀要得我你]"
)
_KANA = (
    "はい|うん|ええ|その通り|そのとおり|まさに|ちょうど|完璧|ばっちり|ありがとう(?:ございます)?|今後|これから|次回?|毎回|いつも|必ず|ずっと|同じ|同様|この|その|それ|これ|そう|こう"
    "|ように|よう|感じ|調子|やり方|方法|形|お願い|いたします|します|して|やって|続けて|ください|下さい|いい|良い|です|ます|だ|から|[でにをはもがのとねよ、。]"
)
_HANGUL = (
    r"(?:네|예|응|맞(?:아요?|습니다)|그래요?|좋(?:아요?|습니다)|완벽(?:해요?|합니다)|정확(?:해요|히|합니다)|바로|그거(?:예요|야)?|그게|이게|이거"
    r"|이렇게|그렇게|이대로|그대로|앞으로[도는]?|다음(?:부터)?[는도]?|항상|계속|매번|같은|똑같이|방식(?:으로|대로)?|식으로|해|하면|돼요?|됩니다"
    r"|해 ?주세요|해 ?줘요?|부탁(?:해요|드려요|드립니다)|감사(?:해요|합니다)|고마워요?|이런|그런)(?![가-힣])"
)
_EMPTY = re.compile(f"{_HAN}|{_KANA}|{_HANGUL}")
_EMPTY_WORDS = frozenset(_LATIN.split())
_WORD = re.compile(r"[a-zà-ÿœß]+(?:['’][a-zà-ÿœß]+)*|\d+|[^\W\d_]", re.IGNORECASE)

_POINTS = re.compile(
    r"\bthere\b(?! (?:is|are|was|were|will|has|have|should|must|can|might|['’]s)\b)(?!['’])|\b(?:likewise|accordingly)\b"
    r"|\b(?:that|this) way\b|\blike (?:that|this)\b|\bdo (?:it|that|so|the same)\b"
    r"|\b(?:dort(?:hin)?|darin|dahin|genauso)\b|(?<=[a-z])-y\b|\blà(?:-bas|-dedans)?\b|\bdedans\b"
    r"|\bcomme ça\b|\b(?:ahí|allí|allá)\b|\basí\b(?! que)"
    "|那里|那儿|那边|那上面|那个?[页表群]|按(?:这|那)|照(?:这|那)|这样|那样|そこ|あそこ|そちら|そのように|そうして|거기|그곳|그쪽|그렇게|이렇게|저렇게",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[，、；。！]\s*|[,;.!](?:\s+|$|(?=[\u3040-\u9fff]))|\s+[—–-]+\s+")


def says_nothing(text: str) -> bool:
    """Whether a text has no content word: it approves, repeats or points back, and says no more."""
    return all(word.casefold().replace("’", "'") in _EMPTY_WORDS for word in _WORD.findall(_EMPTY.sub(" ", text)))


def points_back(text: str) -> bool:
    """Whether a text needs what stands before it: it says nothing, or names a place or a manner by a pointer."""
    return says_nothing(text) or _POINTS.search(text) is not None


def divide_content(text: str) -> tuple[str, str]:
    """Divide a text into its content and the clauses after it that say nothing. Approvals before it are left out: "yes, exactly, …".

    A clause that says how often ("from now on, …") stays with what follows. Both parts are empty if the text says nothing.
    """
    from .judge.cues import CUES  # compiles many patterns

    clauses = [(found.start(), found.end()) for found in _CLAUSE.finditer(text)]
    starts = [0, *(end for _, end in clauses)]
    ends = [*(start for start, _ in clauses), len(text)]
    full = [at for at, (start, end) in enumerate(zip(starts, ends, strict=True)) if not says_nothing(text[start:end])]
    if not full:
        return "", ""
    first = next(at for at in range(full[0] + 1) if at == full[0] or CUES["always"].search(text[starts[at] : ends[at]]))
    return text[starts[first] :], text[ends[full[-1]] :]

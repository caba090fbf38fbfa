"""Templates of the lines about settings that are ignored, with their Chinese text, in the form of `line_templates`."""

from __future__ import annotations

SETTING_LINES: dict[str, str] = {
    "No home directory found, so your user settings are not read. Set LAMINA_HOME.": (
        "找不到主目录，所以没有读取你的用户设置。请设置 LAMINA_HOME。"
    ),
    # A file as a whole
    "Settings file {path}: {problem}; the file is ignored.": "设置文件 {path}：{problem}；已忽略这个文件。",
    'Settings file {path}: has the key "{last}" twice; the last one applies.': "设置文件 {path}：键“{last}”出现了两次；以最后一个为准。",
    "is not valid JSON at line {n}, column {m} ({last})": "第 {n} 行第 {m} 列不是有效的 JSON（{last}）",
    "must contain a JSON object {last}": "必须是 JSON 对象 {last}",
    "cannot be read ({last})": "无法读取（{last}）",
    "is not a regular file": "不是普通文件",
    "is larger than {n} bytes": "大于 {n} 字节",
    "is not UTF-8 text (byte {n})": "不是 UTF-8 文本（第 {n} 字节）",
    "is nested more than {n} levels deep": "嵌套超过 {n} 层",
    "contains an invalid number ({last})": "包含无效的数字（{last}）",
    "contains {tool}, which is not a JSON number": "包含 {tool}，它不是 JSON 数字",
    # One setting: where, what and the consequence
    "Setting {key} ({place}): is at the top level; it is ignored, move it into the object {last}.": (
        "设置 {key}（{place}）：位于最外层；已忽略，请移到对象 {last} 里。"
    ),
    "Setting {key} ({place}): {problem}; it is ignored.": "设置 {key}（{place}）：{problem}；已忽略。",
    "Setting {key} ({place}): {problem}; did you mean {near}? It is ignored.": (
        "设置 {key}（{place}）：{problem}；是不是 {near}？已忽略。"
    ),
    "Setting {key} ({place}): {problem}; the lower value is used.": "设置 {key}（{place}）：{problem}；采用较低的值。",
    "Setting {key} ({place}): {n} more problem[s]; fix the ones above first.": (
        "设置 {key}（{place}）：还有 {n} 个问题；请先改正上面的。"
    ),
    "your settings, {last}": "你的设置，{last}",
    "project settings, {last}": "项目设置，{last}",
    "local settings, {last}": "本地设置，{last}",
    "managed settings, {last}": "管理员设置，{last}",
    "environment, {last}": "环境变量，{last}",
    "environment": "环境变量",
    "there is no such setting": "没有这个设置",
    "is not a known variable": "不是已知的变量",
    "is read only from the process environment": "只从进程的环境变量读取",
    "may not be set by files in the working tree": "不能由项目目录里的文件设置",
    "additionalDirectories and defaultMode may not be set by files in the working tree": (
        "additionalDirectories 和 defaultMode 不能由项目目录里的文件设置"
    ),
    "may not be set by a remote flag": "不能由远程开关设置",
    "waits until you trust this directory": "等你信任这个目录后才生效",
    "requests more than the default, which requires trusting this directory": "超过默认值，需要先信任这个目录",
    "requests more than your own settings allow": "超过你自己的设置所允许的",
    # Invalid values
    "must be {says}, not {raw}": "必须是{says}，不能是 {raw}",
    "must be {says}": "必须是{says}",
    "expected {says}, {last}": "应该是{says}（{last}）",
    "has more than {n} entries": "超过 {n} 项",
    "entry {name} is invalid, it must be part of {says}": "{name} 这一项无效，这里应该是{says}",
    "entry {name} must be a string": "{name} 这一项必须是字符串",
    "entry {name} is not a valid variable name": "{name} 不是有效的变量名",
    "unknown scope {name}": "没有范围 {name}",
    "defaultMode must be a string, not {raw}": "defaultMode 必须是字符串，不能是 {raw}",
    "{event}: each group must be an object with a list `hooks`": "{event}：每一组必须是带有列表 `hooks` 的对象",
    "{tool}: entry {name} must be a string": "{tool}：{name} 这一项必须是字符串",
    "{tool}: must be {says}, not {raw}": "{tool}：必须是{says}，不能是 {raw}",
    "true or false": " true 或 false",
    "one of {values}, or an object that maps any of {last} to one of them": "其中之一：{values}，或者把 {last} 对应到其中之一的对象",
    "one of {last}": "其中之一：{last}",
    "{says} (100k and 1m also work)": "{says}（也可以写 100k、1m）",
    "a whole number of at least {n}": "不小于 {n} 的整数",
    "a whole number from {n} to {m}": "{n} 到 {m} 的整数",
    "a number above {low} and at most {high}": "大于 {low}、不大于 {high} 的数",
    "a number of at least {low} and at most {high}": "{low} 到 {high} 的数",
    "a number above {low}": "大于 {low} 的数",
    "a number of at least {low}": "不小于 {low} 的数",
    "a string of at most {n} characters": "不超过 {n} 个字符的字符串",
    "an absolute path, or one that starts with ~/": "绝对路径，或以 ~/ 开头的路径",
    "a URL that starts with https:// or http://": "以 https:// 或 http:// 开头的网址",
    "a key without spaces": "不含空格的密钥",
    "a list of strings": "字符串列表",
    "an object that maps names to whole numbers of at least 1": "把名字对应到不小于 1 的整数的对象",
    "an object that maps names to strings": "把名字对应到字符串的对象",
    "an object with the lists allow, ask and deny": "带有列表 allow、ask 和 deny 的对象",
    "an object that maps events to lists of groups, each with a list `hooks`": "把事件对应到组的列表的对象，每组带有列表 `hooks`",
    "an object": "对象",
    "a list": "列表",
    "a number that large": "这么大的数",
    # Directories that are refused
    "is the home directory itself": "就是主目录本身",
    "is the home directory or contains it": "是主目录或包含主目录",
    "is in a system directory": "在系统目录里",
    "is in a git directory or a directory for keys": "在 git 目录或存放密钥的目录里",
    "is too near the root of the disk (it needs at least {n} components)": "离磁盘根目录太近（至少需要 {n} 级）",
    "is a network path": "是网络路径",
    "is longer than {n} bytes": "超过 {n} 字节",
}

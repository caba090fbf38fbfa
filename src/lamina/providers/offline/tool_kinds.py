"""What common tools are: pnpm is a package manager, Postgres a database. It lets "Which package manager do we use?" find "We use pnpm".

A question that names a kind matches a text that names a tool of that kind. A kind that no question names adds nothing, so "Who is our
manager?" does not find pnpm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...language.detection import without_common_words
from ...language.terms import normal, terms

# Each kind: the names of the kind in the languages of the chat, and the tools.
_KINDS: tuple[tuple[str, str], ...] = (
    (
        "package manager|dependency manager|包管理器?|パッケージマネージャー?|패키지 매니저|paketmanager|gestionnaire de paquets"
        "|gestor de paquetes",
        "npm pnpm yarn Bun pip pipx Poetry uv conda mamba pdm cargo maven gradle bundler Composer nuget homebrew brew apt cocoapods",
    ),
    (
        "databases?|db|数据库|資料庫|データベース|데이터베이스|datenbank|base de donnees|base de datos",
        "postgres postgresql mysql mariadb sqlite mongodb mongo Oracle mssql dynamodb cassandra cockroachdb clickhouse duckdb bigquery"
        " Snowflake neo4j firestore couchdb supabase",
    ),
    (
        "test(?:ing)? (?:framework|runner|library|tool)|testing|tests with|测试框架|测试工具|テストフレームワーク"
        "|테스트 프레임워크|testframework"
        "|framework de tests?|framework de pruebas",
        "pytest unittest jest vitest mocha jasmine junit testng rspec cypress playwright selenium phpunit nunit xunit catch2 gtest",
    ),
    (
        "editors?|ide|编辑器|エディタ|에디터|editeur",
        "vim neovim nvim emacs vscode Sublime pycharm intellij webstorm goland clion xcode Helix Zed rstudio eclipse",
    ),
    ("linters?|代码检查|リンター|린터", "ruff flake8 pylint eslint tslint biome clippy golangci-lint rubocop shellcheck stylelint"),
    ("formatters?|格式化工具|フォーマッター|포매터|formatierer", "Black Prettier ruff gofmt rustfmt clang-format yapf biome"),
    ("type ?checkers?|类型检查(?:器|工具)?|型チェッカー", "mypy pyright pyre"),
    (
        "(?:web |frontend |backend |ui |js |javascript )?framework|框架|フレームワーク|프레임워크",
        "react vue angular svelte nextjs next.js nuxt django flask fastapi Rails laravel Spring Express nestjs Remix Astro Solid htmx",
    ),
    (
        "(?:programming )?languages?|编程语言|语言|言語|언어|programmiersprache|sprache|langage|lenguaje",
        "python Rust Go golang typescript javascript java kotlin Swift ruby php scala haskell elixir erlang C c++ c# clojure Julia zig",
    ),
    (
        "ci(?:/cd)?(?: (?:system|server|service|tool|provider))?|continuous integration|持续集成|流水线|build server",
        "jenkins circleci travis buildkite teamcity Drone Bamboo Actions Concourse",
    ),
    (
        "cloud(?: provider)?|hosting|host(?:ed|er)?|云服务商?|云厂商|クラウド|클라우드",
        "aws azure gcp hetzner heroku vercel netlify digitalocean fly.io cloudflare linode ovh Render Railway 阿里云 腾讯云 华为云",
    ),
    (
        "(?:issue|bug|ticket|task)(?: |-)?(?:tracker|system|tool)|工单系统|缺陷(?:系统|管理)|チケット管理|ticketsystem",
        "jira Linear github gitlab bugzilla redmine youtrack trello asana Shortcut clickup 禅道 tapd Backlog",
    ),
    (
        "(?:message |job |task )?(?:queue|broker)s?|消息队列|メッセージキュー|메시지 큐|warteschlange",
        "kafka rabbitmq redis Celery sqs nats pulsar sidekiq activemq zeromq rocketmq",
    ),
    ("cach(?:e|ing)|缓存|キャッシュ|캐시", "redis memcached varnish valkey"),
    ("orm|对象关系映射", "sqlalchemy prisma hibernate drizzle typeorm sequelize activerecord peewee"),
    (
        "monitoring(?: tool)?|监控(?:系统|工具)?|モニタリング|모니터링|supervision|monitorizacion",
        "grafana prometheus datadog sentry newrelic kibana zabbix nagios splunk honeycomb",
    ),
    ("design tool|设计工具|デザインツール", "figma Sketch penpot Framer miro"),
    ("chat(?: tool| app)?|messenger|聊天工具|チャットツール", "Slack discord Teams mattermost zulip telegram 飞书 钉钉 企业微信"),
    ("version control|vcs|版本控制|バージョン管理|버전 관리", "git mercurial svn subversion perforce jujutsu fossil"),
    ("operating system|os|操作系统|オペレーティングシステム|운영체제|betriebssystem", "linux ubuntu debian fedora Arch nixos"
    " macos windows freebsd alpine"),
    ("shell", "bash zsh Fish powershell nushell"),
    ("bundlers?|build (?:tool|system)s?|构建工具|打包工具|ビルドツール|빌드 도구", "webpack vite rollup esbuild parcel turbopack"
    " Make cmake bazel Meson Ninja gradle maven"),
    ("container(?:s| runtime| orchestration)?|容器|コンテナ|컨테이너", "docker podman kubernetes k8s containerd nomad"),
    ("infrastructure(?: as code)?|iac|基础设施", "terraform pulumi ansible cloudformation Puppet Chef Salt opentofu"),
    ("wiki|documentation tool|docs tool|文档工具|知识库", "Confluence Notion mkdocs Sphinx docusaurus gitbook readthedocs 语雀"),
)  # fmt: skip

# Words of a question that no answer needs.
_FILLING = frozenset(
    terms(
        "welche welcher welches benutzen verwenden nutzen wir ich quel quelle quels utilisons utilisez utilise nous que cual"
        " usamos uso usan"
        " 使っていますか 使っている 사용하나요 쓰나요 우리는 用 使用"
    )
)


def _any_of(tools: str) -> str:
    """Match one of the tools. A name that is also a word must be written with a capital letter: Go, Spring."""
    names = [re.escape(tool) for tool in tools.split()]
    words = [name for name in names if name[:1].isupper()]
    return "|".join([f"(?i:{'|'.join(name for name in names if name not in words)})", *words])


# Latin names are whole words; a sign such as the second one of C++ belongs to its name.
_NAMES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(rf"(?<![a-z-])(?:{kind})(?![a-z-])"), re.compile(rf"(?<![A-Za-z0-9.-])(?:{_any_of(tools)})(?![A-Za-z0-9+#-])"))
    for kind, tools in _KINDS
)


class ToolKind(NamedTuple):
    tools: re.Pattern[str]
    terms: frozenset[str]  # those that name the kind


def named_kinds(question: str) -> list[ToolKind]:
    """Return the kinds of tools that a question names."""
    plain = normal(question)
    found = ((tools, kind.search(plain)) for kind, tools in _NAMES)
    return [ToolKind(tools, frozenset(terms(kind[0]))) for tools, kind in found if kind is not None]


def question_terms(question: str, kinds: Sequence[ToolKind]) -> set[str]:
    """Return the terms to look for. A question for a kind of tool needs none of its other usual words."""
    return set(terms(without_common_words(question))) - (_FILLING if kinds else frozenset())


def terms_of_tools(text: str, kinds: Sequence[ToolKind]) -> frozenset[str]:
    """Return the terms of these kinds that a text stands for, because it names a tool of the kind."""
    return frozenset[str]().union(*(kind.terms for kind in kinds if kind.tools.search(text)))

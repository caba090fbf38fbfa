"""Groups of words by what they are about, in seven languages: who somebody is, who does what, where things are, what an agent produces.

A sentence about a new subject has few words that the judge has seen. These groups tell it what kind of words the others are. As with
the cues, none decides by itself. A star stands for any ending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _group(words: str, others: str) -> re.Pattern[str]:
    stems = "|".join(re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", " ") for word in words.split("/"))
    return re.compile(rf"\b(?:{stems})\b|{others}")  # for small letters: a search that ignores case takes twice as long


SUBJECTS: Mapping[str, re.Pattern[str]] = {
    "profession": _group(
        "engineer*/develop*/designer*/nurse*/doctor*/physicist*/biolog*/chemist*/scientist*/analyst*/student*/teacher*/teach/professor*"
        "/lawyer*/accountant*/writer*/translator*/founder*/consultant*/intern/researcher*/statistician*/sysadmin/admin*/freelanc*"
        "/pharmacist*/architect*/journalist*/postdoc/phd/manager/director/head of/owner/tester/sre/dba/devops/librarian*/midwife/vet"
        "/mechanic/chef/driver/pilot/editor/economist/bookkeep*/notary/hobby*/scrum master/maintainer/freshman/programmer*/coder"
        "/ingenieur*/entwickler*/krankenschwester/pfleger*/arzt/ärztin/physiker*/lehrer*/anwalt/anwältin/steuerberater*/übersetzer*"
        "/werkstudent*/rentner*/koch/köchin/quereinsteiger*/leite/leiter*/buchhalter*/azubi/informatiker*/ehrenamtlich/ingénieur*"
        "/développeu*/graphiste*/infirmi*/médecin*/prof/avocat*/comptable*/étudiant*/sage-femme/notaire*/libraire*/chercheu*/cheffe"
        "/formateur/formatrice/ingenier*/desarrollador*/diseñador*/enfermer*/médic*/profesor*/abogad*/contable*/estudiante*/veterinari*"
        "/jefe/jefa/analista*/administrador*/biólog*/autónom*",
        "工程师|老师|医生|护士|律师|会计|设计师|产品经理|做产品|学生|实习生|博士|研究生|程序员|运维|策划|架构师|项目经理|店长|教授|毕业"
        "|维护者|美工|エンジニア|デザイナー|看護師|医師|教師|弁護士|経理|研究者|営業|情シス|開発者|翻訳者|フリーランス|プログラマ"
        "|개발자|디자이너|간호사|의사|교사|변호사|회계사|학생|연구원|기획자|프리랜서|강사",
    ),
    # How well somebody knows something, and what makes it hard.
    "ability": _group(
        "know/fluent/comfortable/rusty/beginner/novice/newbie/expert/clueless/confus*/zero/basics/struggl*/trips/alien/greek/new to"
        "/mostly/mainly/background/years of/decade*/come from/coming from/used to/learn*/picked up/self-taught/can't read/no idea"
        "/no clue/colo*rblind/colo*r-blind/dyslexi*/deaf/blind/adhd/braille/hearing/eyesight/screen reader/handed/kenne/kann/anfänger*"
        "/neuland/farbenblind/erfahrung/jahre/auswendig/connais/débute/débutant*/maîtrise/à l'aise/daltonien*/malvoyant*/ans de/perdue*"
        "/llevo/sé/domino/daltónic*/años/principiante*/ni idea/se me dan*",
        "熟|不懂|不会|没学过|没碰过|没用过|入门|新手|小白|零基础|一窍不通|擅长|经验|精通|色盲|色弱|看不懂|费劲|不太好|得意|苦手|初心者"
        "|経験|素人|独学|詳し|わかりません|書けません|さっぱり|始めたばかり|色覚|不慣れ|익숙|초보|처음|몰라|모릅|서툴|색약|색맹|약해"
        "|자신 있|배우",
    ),
    # Where and when somebody works.
    "life": _group(
        "timezone*/time zone*/utc*/gmt*/live in/based in/part-time/part time/night shift*/shifts/mornings/evenings/weekends/nights"
        "/days a week/at home/my machine/my laptop/mother tongue/native/teilzeit/vormittags/abends/nachts/wohne/mi-temps/le soir"
        "/de noche/por la noche/los fines de semana/am wochenende/habite/vivo en/on call/offline",
        "时区|时差|夜班|上班|人在|母语|加班|下班后|晚上|夜勤|勤務|在住|週末|夜に|야간|근무|퇴근|살아요|주말",
    ),
    # Who does what.
    "duty": _group(
        "own/owns/handle*/review*/approv*/sign*/cover*/inherit*/manage*/maintain*/responsib*/in charge/take over/takes over/took over"
        "/hand over/handed/look* after/the contact/allowed to/only * may/verantwort*/zuständig*/betreu*/kümmer*/übernimm*/übernehm*"
        "/freigabe*/freigibt/vertritt/gère/s'occupe*/reprend/valide*/passent par/remplace/lleva/gestiona*/encarga*/aprueba*/sustituye",
        "负责|接手|管$|归|由.{1,8}(?:接|管|负责|处理|审)|对接|审批|交给|担当|引き継|承認|見ます|行います|任せ|移ります|담당|맡|관리"
        "|승인|넘겨|인수",
    ),
    # What changed, or will change, in the project.
    "change": _group(
        "decid*/agree*/chose/chosen/pick*/settl*/drop*/cancel*/cut/reject*/abandon*/postpon*/delay*/slip*/moving/moved/move/switch*"
        "/migrat*/replac*/remov*/retir*/sunset*/deprecat*/freeze*/froze*/launch*/ship*/releas*/goes live/go live/opens/closes/starts"
        "/ends/expires/runs out/scheduled/booked/support for/no longer/any longer/entschied*/beschloss*/verschoben/abgeschalt*"
        "/eingestellt/umgestellt/wechsel*/ausgetauscht/umzug/fällt/gesperrt/startet/endet/décid*/abandonn*/retenu/reporté*/chang*/migr*"
        "/gèle*/ferme/prévu*/fixé*/disparaît/commence/elegi*/qued*/cambi*/cierra/aplaz*/desaparece/empieza/termina/vence",
        "定了|定在|决定|改用|换成|换掉|推迟|延期|下线|上线|停用|放弃|砍|不做了|停止|冻结|封版|投入使用|不再支持|改到|启用|到期|发布|迁"
        "|決ま|決定|中止|見送|廃止|移行|なりました|切り替|公開|開始|終了|リリース|オープン|결정|확정|미뤄|연기|없어|폐지|전환|하기로"
        "|출시|이전|시작|종료|마감",
    ),
    # Who stands behind a fact of the project.
    "party": _group(
        "customer*/client*/legal/compliance/auditor*/audit/regulat*/vendor*/supplier*/provider*/the board/management/ceo/cfo/cto"
        "/marketing/finance/sales/ops/partner*/investor*/hospital*/bank/school*/union/contract*/licen*/budget*/team/office/committee"
        "/kunde*/prüfer*/lieferant*/vorstand/betriebsrat/vertrag/behörde/fournisseur*/clients/direction/mairie/contrat/comité/cliente*"
        "/proveedor*/gerencia/contrato/auditoría/ayuntamiento",
        "客户|甲方|老板|法务|审计|合规|供应商|监管|领导|银行|医院|合同|预算|团队|試験|顧客|取引先|法務|監査|業者|予算|契約|고객|거래처"
        "|법무|감사|업체|예산|계약",
    ),
    # What an agent produces, and how.
    "output": _group(
        "answer*/repl*/respon*/explan*/explain*/summar*/recap*/comment*/commit*/message*/diff*/example*/snippet*/test*/function*"
        "/variable*/identifier*/name*/docs/docstring*/table*/list*/bullet*/emoji*/smiley*/chart*/plot*/report*/slide*/email*/mail*"
        "/heading*/title*/paragraph*/sentence*/tone/format*/style*/spelling/abbreviation*/jargon/dependenc*/librar*/package*/branch*/pr"
        "/prs/command*/option*/apolog*/greet*/units/type hints/quotes/spaces/tabs/markdown/source*/antwort*/erklär*/zusammenfass*"
        "/kommentar*/nachricht*/beispiel*/variabl*/tabelle*/liste*/überschrift*/fachbegriff*/abkürzung*/dateinamen/réponse*/répond*"
        "/expli*/résumé*/commentaire*/exemple*/tableau*/titre*/abréviation*/respuesta*/respond*/resum*/comentario*/mensaje*/ejemplo*"
        "/tabla*/título*",
        "回答|回复|解释|讲|总结|注释|提交信息|代码|测试|变量|函数|文档|表格|图表|报告|邮件|标题|命令|示例|例子|方案|客套|表情|语气|单位"
        "|术语|説明|コメント|コミット|コード|テスト|変数|関数|資料|絵文字|サンプル|差分|敬語|結論|選択肢|답변|대답|설명|주석|커밋|코드"
        "|테스트|변수|함수|보고서|이모|예제|약어",
    ),
    # What an agent is told to do, or not to do, in general.
    "agent does": _group(
        "suggest*/propos*/recommend*/rewrit*/ask/guess*/assum*/warn*/apologi*/mention*/list/tell me/show me/give me/call me/wait for"
        "/confirm/double-check/look at/push/touch/invent*/rename/summari*/talk to me/answer/reply/schlag*/frag*/rate/nenn*/zeig*/gib"
        "/antworte/erfinde/sag*/fass/suggèr*/demande*/réponds/montre*/donne*/dis/invente*/tutoie*/sugier*/propon*/pregunt*/responde"
        "/muestra*/dame/dime/inventes/subas",
        "建议我|问我|告诉我|给我|推荐|别猜|道歉|先.{1,8}再|叫我|跟我说|确认|提案|聞いて|見せて|推測|答えて|謝ら|確認して|제안|물어|알려"
        "|보여|추측|대답|확인",
    ),
    # When a rule holds.
    "condition": _group(
        "when you/whenever/if you/before you/before each/before every/after each/each time/every time/in all/in any/in every/for all"
        "/everywhere/wherever/across/in doubt/unless/where you can/at least/at most/max/only ever/consistently/wenn du/bevor du"
        "/bei jede*/vor jede*/überall/im zweifel/quand tu/avant de/si tu/partout/dans le doute/à chaque/cuando/antes de/en todos"
        "/en todas/ante la duda/cada vez",
        "的时候|之前先|凡是|每次|所有|只要|一旦|拿不准|超过|统一|ときは|する前に|たびに|場合は|迷ったら|すべて|超える|때는|하기 전에"
        "|마다|경우|애매하면|모든|넘는",
    ),
    # Another system, and the parts of one.
    "system": _group(
        "jira/linear/grafana/kibana/datadog/sentry/confluence/notion/slack/teams/trello/asana/figma/miro/pagerduty/opsgenie/sharepoint"
        "/drive/dropbox/onedrive/nextcloud/airtable/coda/hubspot/salesforce/zendesk/freshdesk/intercom/gitlab/github/bitbucket/jenkins"
        "/buildkite/circleci/argocd/crowdin/lokalise/postman/swagger/metabase/looker/superset/tableau/amplitude/mixpanel/plausible"
        "/splunk/graylog/loki/influxdb/prometheus/bugsnag/bugzilla/redmine/youtrack/clickup/basecamp/monday/productboard/dovetail"
        "/zeroheight/frontify/benchling/zotero/overleaf/moodle/1password/bitwarden/vault/s3/nas/personio/bamboohr/docusign/otrs"
        "/mattermost/discord/zulip/telegram/backlog/wiki/intranet/portal/dashboard*/board/channel/folder/calendar/spreadsheet/sheet"
        "/workspace/inbox/queue/bucket/library/tracker/status page/shared drive/kanal/ordner/laufwerk/ablage/kalender/canal/dossier"
        "/bibliothèque/calendrier/carpeta/tablero/calendario",
        r"#[a-z]\w*-?\w*|飞书|钉钉|语雀|石墨|腾讯文档|企业微信|禅道|蓝湖|看板|知识库|群里|空间|网盘|共享|日历|面板|系统里|ノーション"
        "|スラック|チャンネル|フォルダ|スプレッドシート|カレンダー|ドライブ|ダッシュボード|プロジェクトに|노션|지라|슬랙|채널|위키|시트"
        "|드라이브|폴더|캘린더|피그마|센트리|컨플루언스|공간|대시보드",
    ),
    # How far the current task is.
    "state": _group(
        "done/finished/running/building/waiting/pushed/merged/rebas*/green/red/failing/fails/passes/passed/left/remaining/halfway"
        "/so far/right now/in the middle/looking at/working on/works now/fixed/broken/crash*/stuck/compil*/fertig/läuft/offen/durch"
        "/kaputt/gerade/terminé/reste/cassé/en cours/en train/listo/falta*/roto/va por/estoy",
        "跑完|跑到|还差|还剩|做完|改了一半|过了|失败|报错|崩|卡住|正在|合并了|修好|終わりました|途中|残り|落ち|直りました|エラー|中です"
        "|끝났|남았|실패|에러|고쳤|하는 중|보고 있",
    ),
    # A text that is to be written, for others or about others.
    "to write": _group(
        "write a/write the/draft/translate*/compose/tell/say in/announce*/post/poll/ticket/readme/banner/sign says/dialogue/story/novel"
        "/protagonist/character/hero/chapter/poem/quote/article/blog/book/manual/handbook/docs say/spec/schreib in*/übersetz*/handbuch"
        "/laut/sag/roman/geschichte/écris un*/rédige*/traduis*/manuel/d'après/histoire/dis à/escribe un*/redacta*/traduce*/según/novela"
        "/dile",
        "翻译|写一|写封|写条|公告|标语|小说|主角|故事|文章|书上|手册|规范里|贴到|告诉|翻訳|小説|主人公|物語|マニュアル|記事|メールを書"
        "|伝え|一文|번역|소설|주인공|매뉴얼|문서에|메일을 써|전해",
    ),
    # Somebody else, who wishes or says something.
    "other person": _group(
        "colleague*/coworker*/teammate*/boss/friend*/wife/husband/uncle/aunt/brother/sister/mother/father/grandma*/neighbo*r*/some guy"
        "/guy/someone/somebody/people/he/she/his/her/the intern/junior/kolleg*/chef/freund*/frau/mann/nachbar*/praktikant*/er/jemand"
        "/collègue*/ami/amie/sœur/frère/stagiaire/il/elle/compañer*/amig*/herman*/becari*/él/ella/jefe",
        "同事|朋友|领导|隔壁|他|她|别人|有人|同学|同僚|上司|友達|先輩|部長|彼|妻|らしい|동료|팀장|친구|아내|선배|사람들",
    ),
    # Not decided, not sure, or taken back.
    "open": _group(
        "maybe/perhaps/probably/might/thinking about/thinking of/considering/undecided/unsure/not sure/who knows/nothing was decided"
        "/nobody decided/still open/let me think/on second thought/scrap/scratch/forget/never mind/nevermind/kidding/joke/jk/my mistake"
        "/ignore/vielleicht/überleg*/mal sehen/doch nicht/vergiss/scherz/peut-être/hésit*/rien n'est/finalement/laisse tomber/blague"
        "/quizás*/pensando/ya ver*/al final/olvíd*/broma",
        "可能|也许|再想想|没定|没结论|算了|作废|说错|玩笑|不用了|かもしれ|迷って|やっぱり|冗談|まだ決|아마|고민|아직 안|됐어|농담"
        "|몰라요",
    ),
}

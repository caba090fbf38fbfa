"""The fixed replies of the offline chat that every language has, and their French and Spanish texts."""

from __future__ import annotations

from typing import NamedTuple


class Replies(NamedTuple):
    noted: str
    not_found: str
    cannot: str
    told: str  # begins an answer from the user's own words
    help: str
    instructions: str  # begins an answer from an instruction file
    context: str  # begins an answer from the context of the session
    unsure: str
    source: str  # names the memory that an answer comes from
    remembered: str
    nothing: str
    saved: str
    instead: str
    logged: str
    remember_what: str
    ask_back: str
    judgement: str
    forget_what: str
    forget_none: str
    forget_partly: str
    forget_which: str
    forget_all: str
    too_long: str
    not_saved: str
    no_memory: str
    no_tool: str
    hello: str
    thanks: str
    bye: str
    key: str
    cost: str
    today: str
    weekdays: str
    failed: str
    denied: str
    no_output: str
    no_matches: str
    missing: str
    forbidden: str
    written: str
    removed: str
    taken: str
    without_secret: str
    only_secret: str
    pending: str
    kinds: tuple[str, ...] = ()  # names of `excluded_kinds.KINDS`; English has them there


FRENCH = Replies(
    "Noté.",
    "Je n'ai rien trouvé là-dessus dans cette conversation, dans tes instructions ni en mémoire. "
    "Je suis le remplaçant hors ligne de Lamina, pas un modèle de langage ; je ne peux que redire ce que tu me dis. "
    "« help » montre ce que je sais faire.",
    "Cela demande un modèle de langage, et je ne suis que le remplaçant hors ligne de Lamina. Je l'ai noté. "
    "« help » montre ce que je sais faire.",
    "Tu m'as dit : ",
    "Je suis le remplaçant hors ligne de Lamina, pas un modèle de langage. Je sais faire quelques choses :\n\n"
    "- « Retiens : … » enregistre un souvenir, « Oublie … » le met à la corbeille ; /forget efface pour de bon.\n"
    "- À une question, je réponds par la phrase de la conversation, de la mémoire ou des instructions qui convient le mieux.\n"
    "- Commandes : `read CHEMIN`, `list MOTIF`, `search TEXTE in CHEMIN`, `run COMMANDE`, `write CHEMIN: TEXTE`, "
    '`replace "ANCIEN" with "NOUVEAU" in CHEMIN`, `todo: PREMIER; SECOND`.\n\n'
    "Avec une clé d'API, un modèle répond.",
    "Tes instructions disent : ",
    "D'après le contexte de cette session : ",
    "Je ne suis pas sûr que cela réponde à ta question :",
    "(souvenir : {name})",
    "Je me souviens de :",
    "Il n'y a encore aucun souvenir ici.",
    "Je m'en souviendrai : {what}",
    " (au lieu de : {old})",
    "Noté dans le journal du jour : {what}",
    "Que dois-je retenir ? Dis « Retiens : … ».",
    "Je ne l'ai pas enregistré : {what}, cela se consulte au besoin, et un souvenir vieillit. Que faut-il en garder : la raison, "
    "ou ce que je dois faire autrement ? Dis « Retiens : … » avec cela.",
    "Je ne l'ai pas enregistré : je ne garde pas de jugement négatif sur une personne. Que dois-je faire autrement ? "
    "Dis par exemple « Retiens : explique les expressions régulières pas à pas ».",
    "Que dois-je oublier ? Dis « Oublie NOM » ou « Oublie … ».",
    "Aucun souvenir ne parle de {what}.",
    "Rien n'a été retiré. {name} ne correspond qu'en partie : « Oublie {name} » le retire.",
    "Plusieurs souvenirs en parlent. Lequel dois-je oublier : {names} ?",
    "Rien n'a été retiré, car cela effacerait tous les souvenirs ({names}). Dis « Oublie NOM ».",
    "Le message a {size} caractères ; pour un souvenir, j'en prends au plus {most}. Dis l'essentiel en une phrase.",
    "Non enregistré : {why}",
    "Noté seulement dans cette conversation : il n'y a pas de mémoire ici.",
    "Noté seulement dans cette conversation : je n'ai pas d'outil pour écrire.",
    "Bonjour. Je suis le remplaçant hors ligne de Lamina, pas un modèle de langage. "
    "Dis-moi quelque chose à retenir, ou « help » pour voir ce que je sais faire.",
    "Avec plaisir.",
    "Au revoir. /exit ou Ctrl-D ferme le chat.",
    "Définis ANTHROPIC_API_KEY ou OPENAI_API_KEY dans le shell et relance `lamina` ; un modèle répondra alors. /model montre lequel.",
    "/cost montre ce que ce chat a coûté. Sans modèle, il ne coûte rien.",
    "Nous sommes le {day}.",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "Cela a échoué : {why}",
    "Non exécuté, parce que tu as refusé.",
    "(aucune sortie)",
    "Rien trouvé.",
    "{path} n'existe pas.",
    "Ce n'est pas permis ici.",
    "{path} est écrit.",
    "Le souvenir {name} est retiré.",
    "Non enregistré : il y a déjà des souvenirs nommés {name}.",
    "Je m'en souviendrai sans le secret, sous {name}. Un secret a été omis ({what}).",
    "Non enregistré : ce n'est qu'un secret. Dis plutôt où il est conservé.",
    "Cela attend ton accord. `{command}` l'accepte.",
    (
        *("du code", "l'état de la tâche", "l'emplacement d'un fichier", "une liste de pull requests ou de tickets"),
        *("l'histoire du code", "la façon dont un problème a été corrigé", "la structure du code", "le contenu des instructions"),
    ),
)

SPANISH = Replies(
    "Anotado.",
    "No encontré nada sobre eso en esta conversación, en tus instrucciones ni en la memoria. "
    "Soy el sustituto sin conexión de Lamina, no un modelo de lenguaje; solo puedo repetir lo que me dices. "
    "«help» muestra lo que sé hacer.",
    "Eso requiere un modelo de lenguaje, y yo solo soy el sustituto sin conexión de Lamina. Lo anoté. "
    "«help» muestra lo que sé hacer.",
    "Me dijiste: ",
    "Soy el sustituto sin conexión de Lamina, no un modelo de lenguaje. Sé hacer algunas cosas:\n\n"
    "- «Recuerda: …» guarda un recuerdo, «Olvida …» lo mueve a la papelera; /forget borra para siempre.\n"
    "- A una pregunta respondo con la frase de la conversación, de la memoria o de las instrucciones que mejor encaja.\n"
    "- Comandos: `read RUTA`, `list PATRÓN`, `search TEXTO in RUTA`, `run COMANDO`, `write RUTA: TEXTO`, "
    '`replace "VIEJO" with "NUEVO" in RUTA`, `todo: PRIMERO; SEGUNDO`.\n\n'
    "Con una clave de API responde un modelo.",
    "Tus instrucciones dicen: ",
    "Del contexto de esta sesión: ",
    "No estoy seguro de que esto responda a tu pregunta:",
    "(recuerdo: {name})",
    "Recuerdo:",
    "Aquí todavía no hay recuerdos.",
    "Lo recordaré: {what}",
    " (en lugar de: {old})",
    "Anotado en el registro de hoy: {what}",
    "¿Qué debo recordar? Di «Recuerda: …».",
    "No lo guardé: {what} se puede consultar cuando haga falta, y un recuerdo se queda viejo. ¿Qué vale la pena conservar: el motivo, "
    "o lo que debo hacer de otra manera? Di «Recuerda: …» con eso.",
    "No lo guardé: no conservo juicios negativos sobre personas. ¿Qué debo hacer de otra manera? "
    "Di por ejemplo «Recuerda: explica las expresiones regulares paso a paso».",
    "¿Qué debo olvidar? Di «Olvida NOMBRE» u «Olvida …».",
    "Ningún recuerdo habla de {what}.",
    "No se quitó nada. {name} solo coincide en parte: «Olvida {name}» lo quita.",
    "Varios recuerdos hablan de eso. ¿Cuál debo olvidar: {names}?",
    "No se quitó nada, porque eso borraría todos los recuerdos ({names}). Di «Olvida NOMBRE».",
    "El mensaje tiene {size} caracteres; para un recuerdo acepto como mucho {most}. Di lo esencial en una frase.",
    "No se guardó: {why}",
    "Anotado solo en esta conversación: aquí no hay memoria.",
    "Anotado solo en esta conversación: no tengo herramienta para escribir.",
    "Hola. Soy el sustituto sin conexión de Lamina, no un modelo de lenguaje. "
    "Dime algo que recordar, o «help» para ver lo que sé hacer.",
    "De nada.",
    "Hasta luego. /exit o Ctrl-D cierra el chat.",
    "Define ANTHROPIC_API_KEY u OPENAI_API_KEY en el shell y reinicia `lamina`; entonces responde un modelo. /model muestra cuál.",
    "/cost muestra lo que costó este chat. Sin modelo no cuesta nada.",
    "Hoy es {day}.",
    "lunes martes miércoles jueves viernes sábado domingo",
    "No se pudo: {why}",
    "No se ejecutó, porque lo rechazaste.",
    "(sin salida)",
    "No se encontró nada.",
    "{path} no existe.",
    "Eso no está permitido aquí.",
    "{path} está escrito.",
    "Se quitó el recuerdo {name}.",
    "No se guardó: ya hay recuerdos con el nombre {name}.",
    "Lo recordaré sin el secreto, como {name}. Se omitió un secreto ({what}).",
    "No se guardó: es solo un secreto. Di mejor dónde se guarda.",
    "Eso espera tu aprobación. `{command}` lo acepta.",
    (
        *("el código", "el estado de la tarea", "la ubicación de un fichero", "una lista de pull requests o tickets"),
        *("la historia del código", "cómo se arregló algo", "la estructura del código", "el contenido de las instrucciones"),
    ),
)

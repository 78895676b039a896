"""Word lists that the English pair rules read: classes of the language, in dictionary form, never single cases."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


NOMINAL = frozenset({"NOUN", "PROPN"})
# Labels of Universal Dependencies and those of spaCy's official models, side by side.
OBJECTS = frozenset({"obj", "dobj"})
RECEIVERS = frozenset({"iobj", "dative"})
PARTICLE_LABELS = frozenset({"compound:prt", "prt"})
RELATIVES = frozenset({"acl:relcl", "relcl"})
SUBJECTS = frozenset({"nsubj", "nsubj:pass", "nsubjpass"})
PASSIVE = frozenset({"aux:pass", "auxpass", "nsubj:pass", "nsubjpass"})
ATTRIBUTES = frozenset({"amod", "compound"})

POSSESSIVES = words("my your his her its our their")
RELATIVE_PRONOUNS = words("that which who whom")
# Tagged as nouns at times, pronouns all the same.
PRONOUN_NOUNS = words(
    "one ones something anything nothing everything someone anyone everyone somebody anybody everybody "
    "nobody none"
)
# Words of number and choice that stand for a noun left out ("leave one", "cleared the last of it").
HEADLESS = words(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy "
    "eighty ninety hundred thousand first third fourth fifth sixth seventh eighth ninth tenth last next "
    "other others another both each either many few several some any much more most less all half enough"
)
# Linking verbs: what follows is said of the subject, nothing is acted on.
COPULAS = words("be become seem appear remain")
# Verbs that take no direct object; they never share the object of a verb beside them ("sit and read a book").
INTRANSITIVES = words(
    "agree apologize apologise appear argue arrive be become behave belong chat cheat collapse complain "
    "cough crash come cry daydream depend die dine disappear doze exist faint fall flinch frown gather "
    "giggle glow go graduate grin happen hesitate hurry itch jog kneel laugh lie linger listen live look "
    "meditate moan mumble nap occur oversleep panic participate pause pray proceed quarrel rain react "
    "recover rely relax remain rest retire rise scream seem shiver shop shout shower sigh sit sleep smile "
    "snack sneeze snooze snore snow sob socialize sparkle stand stare stay struggle study succeed sweat "
    "swim talk think travel tremble vanish vomit wait wake walk wander weep wink work worry yawn"
)
# Verbs that never have one: what a parser calls their object is a subject behind the verb or a measure.
OBJECTLESS = words("arrive belong come exist fall go happen lie rise sit sleep")
# Their noun behind is a subject or a receiver of a clause ("I hope people come"); an object only by the parser.
CLAUSE_VERBS = words("hope think guess suppose wish say agree glance peer stare lean live step")
# Verbs of movement: a noun of time behind them tells how long, a particle may be a preposition.
MOVEMENT = words(
    "arrive bike charge climb come crawl creep cycle dash dive drift drive fall float fly get glance go "
    "head hike hop hurry jog jump lean lie live look march move peer roll row run rush sail scroll sit "
    "skip slide slip sneak sprint stare step stroll stumble swim travel trip walk wander"
)
# Verbs that open another one ("try and find", "go buy", "help cook dinner").
OPENERS = words("try go come be stop start get hurry")
# Verbs whose two bare objects are a receiver and a thing.
DITRANSITIVES = words(
    "ask assign award bake bring build buy cause charge cook deny deal email fetch find forgive get give "
    "grant hand knit leave lend loan mail make offer order owe pass pay play pour promise read save sell "
    "send serve show sing slip spare teach tell text throw toss wish write"
)
# Behind these a that-clause is what is told, not a relative clause of the noun ("told my boss that I quit").
TELLING = words("tell show remind promise convince assure warn inform ask persuade teach text")
# After these "noun to do" is a clause of its own: the noun is its subject, not an object.
WANT_VERBS = words("want like love hate prefer expect wish desire mean need")
# Whom one needs to do something; a thing that one needs to do something is an object ("need a pen to write").
PERSONS = words(
    "aunt baby boss boy boyfriend brother child class colleague cousin coworker dad daughter doctor "
    "everyone family father friend girl girlfriend grandma grandpa grandmother grandfather guy husband "
    "kid landlord man manager mom mother mum neighbor neighbour nurse parent partner people person "
    "roommate sister son student teacher team therapist uncle wife woman"
)
# Verbs whose object a bare infinitive may follow ("help my brother move").
BARE_INFINITIVE_VERBS = words("help let make have see watch hear feel notice")
# Such infinitives look like nouns behind a noun ("makes my stomach hurt").
NOUNLIKE_INFINITIVES = INTRANSITIVES | MOVEMENT | words("ache change dance grow hurt melt race sing")
# Forms in -ing and the like that are prepositions.
PREPOSITIONS = words("including excluding regarding concerning during barring")
# Verbs of plans and lists: before a noun without determiner they are verbs still ("brush teeth", never "book club").
PLAN_VERBS = words(
    "answer assemble bake bathe boil brush buy call cancel check chop clean collect cook defrost draw "
    "drink drop dust eat empty feed fetch find finish fix fold freeze fry grab grate hang iron join knead "
    "knit learn light load make meet mend mop mow open order pack paint pay peel pick plan plant pour "
    "practice practise prep print pull read renew repair review rinse roast scrub see send sew share "
    "shave sing sketch slice sort steam stir stretch study sweep text tidy toast trim unload vacuum visit "
    "wash watch water wear whisk wipe wrap write"
)
# After these a bare -ing word is a clause ("start swimming", "love reading").
ACTIVITY_VERBS = words(
    "start stop begin enjoy love like hate try keep finish quit avoid miss prefer continue go resume "
    "consider suggest recommend practice practise dislike mind"
)
# Verbs that hand the object of a relative clause on ("the song I think you like").
SAYING = words("think say know believe hope guess feel hear swear bet suppose wish want")

PARTICLES = words("up out off down away back on in over along around aside apart through together")
CLEAR_PARTICLES = words("up out off down away back")
# The other particles are prepositions more often: they count with these verbs only.
PARTICLE_VERBS = frozenset(
    (verb, word)
    for word, verbs in {
        "on": "cheer flip have keep leave pass pull put switch take try turn",
        "in": "add breathe bring call fill hand invite kick lock mix order plug sign take tuck turn type",
        "over": "ask bring flip hand have invite kick knock look mull pull push read take talk think tip turn",
        "along": "bring invite take",
        "around": "show turn",
        "aside": "lay push put set",
        "apart": "take tear",
        "through": "think",
        "together": "bring glue piece pull put sew",
    }.items()
    for verb in verbs.split()
)
# Before a noun phrase these are more often followed by a preposition ("leave it on the table").
WEAK_PARTICLE_VERBS = words("add breathe bring call have keep leave lock mix order take")
# "let the dog out" is letting, by the definition of a pair: the particle only says where to.
NO_PARTICLE = words("let be have want see spend need")
STRANDED = words("about for with to from at in on of into after without over through like by against")

TIME_NOUNS = words(
    "second minute min hour day night week month year decade morning noon afternoon evening weekend time "
    "moment while today tonight tomorrow yesterday monday tuesday wednesday thursday friday saturday "
    "sunday am pm mile kilometer kilometre meter metre km january february april june july august "
    "september october november december"
)
DEICTIC_TIMES = words(
    "today tonight tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday am pm "
    "january february april june july august september october november december"
)
# What marks a noun of time or measure as an adverbial: "last night", "two hours", "every day", "all morning".
TIME_MARKS = words(
    "last next this that these those every each all some any one once twice few several half most whole "
    "entire same other yesterday tomorrow"
)
# Units of which "an hour" says how long, behind a verb that takes none ("cooked an hour").
TIME_UNITS = words("second minute min hour day night week month year decade moment while mile kilometer km")
# Verbs that take "an hour" as well, if no "today".
UNIT_TAKERS = words(
    "have take give make buy leave allow spare book set find add owe offer promise reserve steal win gain "
    "use request ask grant lend cost bring mark choose pick name"
)
# Verbs that do act on a time: "spend the evening", "waste two hours".
TIME_TAKERS = words(
    "spend waste need want have love hate enjoy save plan celebrate brighten ruin spoil start begin end "
    "finish remember forget kill lose get survive share describe devote dedicate cherish miss count fear "
    "dread invest imagine face fill"
)
# After these nouns a clause tells when, where, how or why: the noun is no object of it ("the day we met").
ADVERBIAL_HEADS = TIME_NOUNS | words(
    "way reason place fact chance news impression sense belief summer winter spring"
)

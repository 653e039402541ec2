// What a kind is: one record of data and rules. kinds/*.ts make them, every other room reads them.

import type { Caller, Scope } from './caller.ts'
import type { FieldError } from './errors.ts'
import type { Grant } from './grant.ts'
import type { Json, JsonObject, Ref, Resource } from './object.ts'
import type {
  BoundRules,
  Explained,
  Judgement,
  Question,
  Right,
  RuleLike,
  Rules,
  Shared,
  TeamPermissions,
  Who,
} from './permissions.ts'
import type { Schema, Static, TSchema } from './schema.ts'

export type { Question, Right, Who } from './permissions.ts'

export type Verb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete' | 'deletecollection'
const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** A column of `kubectl get`; priority > 0 shows with -o wide only. Name and Age are added by the server. */
export type Column = {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly description: string
  readonly priority?: number
  readonly value: (object: Resource) => string | number | boolean | undefined
}

/** What a kind's rules may ask of the house, bound to the caller of the request. */
export type Tools = {
  readonly caller: Caller
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  /** SHA-256, in hex. */
  readonly digest: (text: string) => string
  /** The request path's own evaluator, asked for the caller. */
  readonly judge: (question: Question) => Promise<Judgement>
  readonly rules: (namespace: string) => Promise<Rules>
  /** What of these rules the caller does not hold, and so may not give away, printed (D27). */
  readonly missing: (rules: readonly RuleLike[], namespace: string) => readonly string[]
  /** The rules of a role that is there. */
  readonly rulesOfRole: (kind: 'Role' | 'ClusterRole', ref: Ref) => readonly RuleLike[] | undefined
  /** Everything bound to a group, with where it counts. */
  readonly boundTo: (group: string) => readonly BoundRules[]
  /** What objects give a team by themselves, whoever asks. Looks through all of them. */
  readonly sharedWith: (team: string) => Promise<readonly Shared[]>
  /** Most seconds an access key may live; undefined: any (D18). */
  readonly maxKeyTTL: number | undefined
  /** Whether a scope is no wider than that of the caller's key (D25). */
  readonly isWithinScope: (scope: unknown) => boolean
  /** Whether one scope is no wider than another (D25). */
  readonly isNoWider: (inner: unknown, outer: unknown) => boolean
  /** Most seconds a direct-cluster token may live (D31). */
  readonly maxTokenTTL: number
  /** A direct-cluster token of the caller. `ttl` in seconds; `expires` in milliseconds, earlier where the key ends earlier. */
  readonly sign: (wanted: {
    readonly ttl: number
    readonly scope: Scope | undefined
  }) => Promise<{ readonly token: string; readonly expires: number }>
  /** Makes a new key sign tokens from now on; answers its id. */
  readonly newSigningKey: () => Promise<string>
  /** A new pair of keys for signing, the private half as JSON. */
  readonly keyPair: () => { readonly publicKey: JsonObject; readonly privateKey: string }
  readonly read: (kind: Kind, ref: Ref) => Promise<Resource | undefined>
  /** Objects as they lie there, what is sealed still sealed. */
  readonly list: (kind: Kind, selection: Selection) => Promise<readonly Resource[]>
  /** Whom a bearer key belongs to; throws where it does not count (TokenReview). */
  readonly authenticate: (key: string) => Caller | undefined
  /** When a bearer key that counts ends, as far as is known, in milliseconds; undefined: never. */
  readonly keyEnds: (key: string) => number | undefined
  /** The same of the very secret that the caller came with. */
  readonly ownKeyEnds: () => number | undefined
  /** When the current secret of a stored key ends, in milliseconds; undefined: there is no such key. */
  readonly endOfKey: (uid: string) => number | undefined
  /** The same question as `judge`, about somebody else. */
  readonly judgeOther: (who: Caller, question: Question) => Judgement
  /** How an answer to a question comes about, for the caller or somebody else (D27). */
  readonly explain: (question: Question, who: Caller) => Explained
  readonly whoCan: (question: Question) => readonly string[]
  /** Who is in a team and through what, and what the team may do and through which binding. */
  readonly permissionsOf: (team: string) => TeamPermissions
  /** Groups and teams of a user without a request at hand (D17). */
  readonly callerNamed: (user: string) => Caller
  /** Whoever owns something, as they would come; undefined: nobody, or a team that is not there. */
  readonly callerOf: (owner: {
    readonly user?: string | undefined
    readonly team?: string | undefined
    readonly uid?: string | undefined
  }) => Caller | undefined
  /** The uid of a team that exists and is not being deleted. */
  readonly teamUid: (name: string) => string | undefined
  /** The uid of a stored object. */
  readonly uidOf: (kind: Kind, ref: Ref) => string | undefined
  /** The team that has a username already. */
  readonly teamWithUsername: (username: string) => string | undefined
  /** Takes the digest of a key for the object with this uid, until it is stored; undefined when another has it (D12). */
  readonly takeDigest: (digest: string, uid: string) => (() => void) | undefined
  /** Notes that these access keys were used elsewhere; answers how many of them are there. */
  readonly touchKeys: (uses: readonly { readonly uid: string; readonly time: number }[]) => number
  /** The namespaces in which anything is. */
  readonly namespaces: () => readonly string[]
  /** Fields that the caller may not see and that this write sets, whatever to: dotted paths. */
  readonly written: readonly string[]
  readonly warn: (text: string) => void
  readonly dryRun: boolean
}

type Selection = { readonly namespace: string; readonly labelSelector: string }
/** Fields that only the answer to this very write shows (D13). */
export type Shown = (object: Resource) => Resource

type Hooks<O extends Resource> = {
  /** Rights that come from the object itself, such as its owner's. Pure. */
  readonly rights?: (object: O, who: Who) => readonly Right[]
  /** Terms (candidates.ts) of everybody whom `rights` can give a right: filtered lists find objects by them. Pure. */
  readonly readers?: (object: O) => readonly string[]
  /** Fills in what follows from the object itself. Pure. */
  readonly prepare?: (next: O, old: O | undefined) => O
  /** Fills in what follows from who asks, such as the owner. Pure. */
  readonly assign?: (next: O, old: O | undefined, caller: Caller) => O
  /** What the object gives to whom. The gate refuses a write that gives away what its caller does not hold (D60). Pure. */
  readonly grants?: (object: O) => readonly Grant[]
  /** Rules beyond the schema. Pure; all errors, not the first. */
  readonly validate?: (next: O, old: O | undefined) => readonly FieldError[]
  /** May refuse (throw), change the object before it is stored, and show something once. `abandon`: it was not stored after all. */
  readonly admit?: (
    next: O,
    old: O | undefined,
    tools: Tools,
  ) => Promise<{ object: O; shown?: Shown; abandon?: () => void }>
  /** Joins in what is kept beside the object, such as last activity (D19), whenever it is shown. Pure. */
  readonly join?: (object: O, lastActivity: (id: string) => number | undefined) => O
  /**
   * What is stored in the same commit because of a change; `next` undefined: it is gone. At most one object of a kind,
   * and none of this kind. Pure but for the tools.
   */
  readonly besides?: (old: O, next: O | undefined, tools: Tools) => readonly Beside[]
  /** For kinds that are not stored but can be read: all there are. */
  readonly collect?: (tools: Tools) => readonly O[]
  /** For kinds that are not stored: the answer to a create. */
  readonly answer?: (next: O, tools: Tools) => Promise<O>
}

/** An object of another kind that comes with a write. Its name, if it has none, is made of the kind's prefix. */
export type Beside = {
  readonly kind: Kind
  readonly object: JsonObject
  /**
   * What to write where an object has the name already; undefined: nothing. With the uid of that object it is an update,
   * without one it takes its place as a new object. Absent: the name must be free.
   */
  readonly merge?: (there: Resource) => JsonObject | undefined
  /** Where `most` objects have this label, another object is written instead of a new one. */
  readonly limit?: {
    readonly label: string
    readonly value: string
    readonly most: number
    readonly instead: Beside
  }
}

/** What can be asked of one object beside the common verbs. `get` answers something about it, `create` may change it. */
export type Subresource = {
  readonly verb: 'get' | 'create'
  /** Kind of the answer, for discovery. */
  readonly kind: string
  /** Whether a further segment of the path names a part of it, as in history/3. */
  readonly hasParts?: boolean
  /** Schema of `spec` in the body of a create. The audit log shows no other field of it. */
  readonly spec?: Schema
  readonly run: (object: Resource, asked: Asked, tools: Tools) => Promise<Ran>
}
/** `body` of a create; `part` of a get, where one was named. */
type Asked = { readonly body?: Json | undefined; readonly part?: string | undefined }
/** `object`: what to store, if it changes. `answer`: what to say instead of the stored object. */
export type Ran = { readonly object?: Resource; readonly shown?: Shown; readonly answer?: Resource }

type Names = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly description: string
  readonly verbs: readonly Verb[]
  /** Dotted paths. Hidden ones never leave; write-only ones are taken out before storing; sealed ones are encrypted at rest. */
  readonly hidden: readonly string[]
  readonly writeOnly: readonly string[]
  readonly sealed: readonly string[]
  readonly subresources: { readonly [name: string]: Subresource }
  /** Whether `/status` is served (D9). */
  readonly statusSubresource: boolean
  /** A create without a name gets a generated name with this prefix (D24). */
  readonly generateNamePrefix: string | undefined
  /** Only the owner and administrators of the kind (verb *) see and change an object. Others get a 404 (D15). */
  readonly ownerOnly: boolean
  /** A partial list would mislead: callers who may not list all objects get a 403, not the objects they may get (D27). */
  readonly allOrNothing: boolean
  /** The gate checks every grant on every write, as Kubernetes does for roles and bindings (D60). */
  readonly checkedWhole: boolean
  /** How names are checked: as DNS subdomains, or as any segment of a path, as the RBAC kinds allow. */
  readonly nameRule: 'subdomain' | 'segment'
  /** The server records when somebody last read an object with its data (D35). */
  readonly keepsLastRead: boolean
  readonly stored: boolean
  readonly served: boolean
  readonly columns: readonly Column[]
  /** A valid object of the kind: documentation, and the conformance suite's starting point. */
  readonly sample: JsonObject
}

export type Kind = Names &
  Hooks<Resource> & {
    readonly apiVersion: string
    /** `teams.management.platform.sh`: the word for the kind wherever one word is needed. */
    readonly id: string
    readonly spec: Schema | undefined
    readonly status: Schema | undefined
    /** Everything beside metadata, spec and status included. */
    readonly fields: { readonly [name: string]: Schema }
  }

/** A kind that knows what its objects look like. Only the compiler sees `shape`: nothing is ever in it. */
export type KindOf<O extends Resource<unknown, unknown>> = Kind & { readonly shape?: O }

type Optional =
  | 'group'
  | 'version'
  | 'shortNames'
  | 'categories'
  | 'verbs'
  | 'hidden'
  | 'writeOnly'
  | 'sealed'
  | 'statusSubresource'
  | 'subresources'
  | 'generateNamePrefix'
  | 'nameRule'
  | 'ownerOnly'
  | 'allOrNothing'
  | 'checkedWhole'
  | 'keepsLastRead'
  | 'stored'
  | 'served'
  | 'columns'

export type Definition<S extends TSchema, T extends TSchema> = Omit<Names, Optional> &
  Partial<Pick<Names, Optional>> &
  Hooks<Resource<Static<S>, Static<T>>> & {
    readonly spec?: S
    readonly status?: T
    readonly fields?: { readonly [name: string]: TSchema }
  }

/** The one way to make a kind. Everything that is not said has the value most kinds want. */
export function defineKind<S extends TSchema, T extends TSchema>(definition: Definition<S, T>): Kind {
  const group = definition.group ?? 'management.platform.sh'
  const version = definition.version ?? 'v1'
  return {
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    hidden: [],
    writeOnly: [],
    sealed: [],
    statusSubresource: false,
    subresources: {},
    generateNamePrefix: undefined,
    nameRule: 'subdomain',
    ownerOnly: false,
    allOrNothing: false,
    checkedWhole: false,
    keepsLastRead: false,
    stored: true,
    served: true,
    columns: [],
    ...(definition as unknown as Partial<Kind> &
      Pick<Kind, 'kind' | 'plural' | 'singular' | 'namespaced' | 'description' | 'sample'>),
    group,
    version,
    apiVersion: group ? `${group}/${version}` : version,
    id: group ? `${definition.plural}.${group}` : definition.plural,
    spec: definition.spec as Schema | undefined,
    status: definition.status as Schema | undefined,
    fields: {
      ...(definition.fields as { readonly [name: string]: Schema } | undefined),
      ...(definition.spec ? { spec: definition.spec as Schema } : {}),
      ...(definition.status ? { status: definition.status as Schema } : {}),
    },
  }
}

// One step of a run: a request with its purpose, the prediction before it, and its outcome.

import type { HttpAnswer, HttpRequest } from '../../support/direct-http.ts'
import type { Credential, Principal } from './credentials.ts'
import type { Cause, Known } from './model.ts'
import type { KindInfo } from './objects.ts'
import type { ReadScope } from './scopes.ts'
import type { Atom, Bits } from './universe.ts'

/** The attacks that the generator tries, one for each known hole. docs/PROOF.md shows how often each was tried. */
export const families = [
  'aggregation',
  'impersonation',
  'key-groups',
  'reserved-labels',
  'scoped-sharing',
  'team-names',
  'lifetime',
  'token-overlap',
  'secret-names',
  'typos',
  'ownership',
  'old-versions',
  'users',
  'sessions',
  'machines',
  'clusters',
  'brought-keys',
  'bindings',
] as const
export type Family = (typeof families)[number]

export type Method =
  | 'create'
  | 'update'
  | 'json'
  | 'merge'
  | 'strategic'
  | 'apply'
  | 'delete'
  | 'deletecollection'
  | 'get'

/** As in the headers. */
export type Impersonation = { readonly user: string; readonly groups: readonly string[] }

export type Step = {
  readonly actor: 'attacker' | 'admin'
  readonly secret: string
  readonly as?: Impersonation
  readonly kind: KindInfo
  readonly namespace: string
  readonly name: string
  readonly sub: string
  readonly method: Method
  readonly dryRun: boolean
  readonly body?: unknown
  readonly query?: readonly string[]
  readonly headers?: { readonly [name: string]: string }
  /** Sends the secret in this cookie instead of the Authorization header, as a browser does. */
  readonly cookie?: string
  /** The attack; undefined: an ordinary step. */
  readonly danger?: Family
  /** A short name of the change. */
  readonly what: string
}

/** A step outside of the API: at the provider or an issuer, or below /auth. */
export type SignInStep = {
  readonly what: string
  readonly danger?: Family
  /** Whether attackers take it with what they have. Then they must not gain anything. */
  readonly byAttackers: boolean
  /** Returns what the model learns when it has processed the changes of the store. */
  readonly run: () => Promise<((changes: readonly Change[]) => void) | undefined>
}

/** The model's prediction before the request is sent. */
export type Before = {
  /** undefined: the secret is invalid. */
  readonly credential: Credential | undefined
  /** The identity that the request uses. */
  readonly principal: Principal | undefined
  readonly scope: ReadScope
  /** Everything the caller may do. */
  readonly bits: Bits
  readonly ask: Atom
  readonly allowed: boolean
  /** Whether the caller may delete the object. */
  readonly deletes: boolean
  /** Whether the caller administers access keys (D14). */
  readonly administers: boolean
}

export type Change = {
  readonly type: 'created' | 'updated' | 'deleted'
  readonly before: Known | undefined
  readonly after: Known | undefined
  readonly cause: Cause
}

export type Outcome = {
  readonly step: Step
  readonly before: Before
  readonly request: HttpRequest
  readonly answer: HttpAnswer
  readonly accepted: boolean
  readonly changes: readonly Change[]
  /** The secret of an access key in the response. */
  readonly shown: string | undefined
}

const verbs: { readonly [method in Method]: string } = {
  create: 'create',
  update: 'update',
  json: 'patch',
  merge: 'patch',
  strategic: 'patch',
  apply: 'patch',
  delete: 'delete',
  deletecollection: 'deletecollection',
  get: 'get',
}

/** The forms of an answer in the order in which the client prefers them. */
function isOfMetadata({ method, name, headers = {}, query = [] }: Step): boolean {
  if (method !== 'get') return false
  for (const form of (headers['accept'] ?? '').split(',')) {
    const [, as = ''] = /;as=(\w+);/.exec(form) ?? []
    if (as === 'Table') return !query.includes('includeObject=Object')
    if (as === '') return false
    if ((as === 'PartialObjectMetadataList') === (name === '')) return true
  }
  return false
}

export function askOf(step: Step): Atom {
  const { kind, namespace, name, sub, method } = step
  const isNamed = method !== 'deletecollection' && !(method === 'create' && sub === '')
  const verb = method === 'get' && name === '' ? 'list' : verbs[method]
  // Parts of a subresource, as in history/3, are not separate permissions.
  const [own = ''] = sub.split('/')
  const ask = {
    verb,
    group: kind.group,
    resource: kind.plural,
    sub: own,
    namespace,
    name: isNamed ? name : '',
    path: '',
  }
  return isOfMetadata(step) ? { ...ask, metadata: true } : ask
}

// Defines grants: the permissions that an object gives to others.
// Kinds declare them, and the gate in src/admission checks them (D60).

import type { Json, Ref } from './object.ts'
import type { RuleLike, Target } from './permissions.ts'

/** Connected clusters, by name or by labels. */
export type ClusterSelection = {
  readonly names?: readonly string[] | undefined
  readonly selector?:
    | {
        readonly matchLabels?: { readonly [key: string]: string } | undefined
        readonly matchExpressions?: readonly LabelRequirement[] | undefined
      }
    | undefined
}
type LabelRequirement = {
  readonly key?: string | undefined
  readonly operator?: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | undefined
  readonly values?: readonly string[] | undefined
}

/**
 * The recipient of a grant. The user `*` is every authenticated user. `keysOnly`: the keys of the team, without its members
 * (D16).
 */
export type Recipient = {
  readonly kind: 'user' | 'group' | 'team'
  readonly name: string
  readonly keysOnly?: true
}

/**
 * `field`: the path of the grant in the object. `to`: absent if it goes to future subjects with the name of the object.
 */
export type Grant = { readonly field: string; readonly to?: Recipient } & (
  | /** The rules of a role, for all of its subjects. `aggregates`: it also contains the rules of other roles. */ {
      readonly type: 'rules'
      readonly rules: readonly RuleLike[]
      readonly aggregates: boolean
    }
  | /** A role in a namespace, or everywhere if it is empty. */ {
      readonly type: 'role'
      readonly role: { readonly kind: 'Role' | 'ClusterRole' } & Ref
      readonly namespace: string
    }
  | /** Verbs on the object itself. */ {
      readonly type: 'object'
      readonly verbs: readonly string[]
      readonly subresources: readonly string[]
    }
  | /** Ownership of the object: every verb on it, and changing the owner. */ { readonly type: 'owner' }
  | /** Everything that a username holds (D63). `through`: distinguishes the ways to act as the user. */ {
      readonly type: 'user'
      readonly user: string
      readonly through: string
    }
  | /** The permissions of a team. */ { readonly type: 'team'; readonly team: string }
  | /** Reading another object. */ { readonly type: 'read'; readonly target: Target }
  | /** The data of another secret, copied as long as the owner may read it. */ {
      readonly type: 'copy'
      readonly source: Ref & { readonly uid?: string | undefined }
      readonly owner: { readonly user?: string | undefined; readonly team?: string | undefined }
    }
  | /** A connected cluster: what is selected for it begins to flow (D68). */ {
      readonly type: 'cluster'
      readonly name: string
      readonly labels: { readonly [key: string]: string }
      readonly gateway: { readonly url?: string | undefined; readonly caBundle?: string | undefined }
      readonly projects: readonly {
        readonly project?: string | undefined
        readonly namespaces?: readonly string[] | undefined
      }[]
    }
  | /** A role of connected clusters, for the members of a team (D69). */ {
      readonly type: 'clusterRole'
      readonly clusters: ClusterSelection
      readonly role: string
    }
  | /** The data of the object, sent to connected clusters as long as the owner may deliver it (D69). */ {
      readonly type: 'deliver'
      readonly clusters: ClusterSelection
      /** The rest of the entry: another namespace or name is another delivery. */
      readonly target: Json
      readonly owner: { readonly user?: string | undefined; readonly team?: string | undefined }
    }
  | /** A bearer credential that acts as its owner. */ { readonly type: 'credential' }
)

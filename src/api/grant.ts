// Defines grants: the permissions that an object gives to others.
// Kinds declare them, and the gate in src/admission checks them (D60).

import type { Ref } from './object.ts'
import type { RuleLike, Target } from './permissions.ts'

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
  | /** A bearer credential that acts as its owner. */ { readonly type: 'credential' }
)

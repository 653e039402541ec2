// What an object gives to somebody. Kinds declare grants; the gate in src/admission decides who may make them (D60).

import type { Ref } from './object.ts'
import type { RuleLike, Target } from './permissions.ts'

/** Who receives a grant. The user `*` stands for all authenticated users. */
export type Recipient = { readonly kind: 'user' | 'group' | 'team'; readonly name: string }

/** `field`: the field of the object that grants it. `to`: absent if the grant is for any later holder of the object's name. */
export type Grant = { readonly field: string; readonly to?: Recipient } & (
  | /** The rules of a role, for everybody it is bound to. `aggregates`: it includes the rules of other roles, whatever they are. */ {
      readonly type: 'rules'
      readonly rules: readonly RuleLike[]
      readonly aggregates: boolean
    }
  | /** A role in a namespace; empty: in all namespaces. */ {
      readonly type: 'role'
      readonly role: { readonly kind: 'Role' | 'ClusterRole' } & Ref
      readonly namespace: string
    }
  | /** Verbs on the object itself. */ {
      readonly type: 'object'
      readonly verbs: readonly string[]
      readonly subresources: readonly string[]
    }
  | /** Ownership of the object: every verb on it and the right to give it away. */ { readonly type: 'owner' }
  | /** All that a team has. */ { readonly type: 'team'; readonly team: string }
  | /** Reading another object. */ { readonly type: 'read'; readonly target: Target }
  | /** The data of another secret, copied for as long as the owner may read it. */ {
      readonly type: 'copy'
      readonly source: Ref & { readonly uid?: string | undefined }
      readonly owner: { readonly user?: string | undefined; readonly team?: string | undefined }
    }
  | /** A bearer credential. One of a team acts as the team. */ { readonly type: 'credential' }
)

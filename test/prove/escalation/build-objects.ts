// Creates objects of a new world as its administrator.

import type { Stage } from './generator-context.ts'
import { type KindInfo, kinds, type Obj, type PolicyRule, rbac, type Spec } from './objects.ts'

export async function make(
  stage: Stage,
  kind: KindInfo,
  namespace: string,
  name: string,
  body: Partial<Obj>,
): Promise<string> {
  const { prover } = stage
  const metadata = { name, ...(namespace ? { namespace } : {}), ...body.metadata }
  const { shown, answer, accepted } = await prover.perform({
    actor: 'admin',
    secret: prover.server.adminKey,
    kind,
    namespace,
    name,
    sub: '',
    method: 'create',
    dryRun: false,
    body: { ...body, metadata },
    what: 'creation',
  })
  if (!accepted) throw new Error(`the world could not be built: ${kind.kind} ${name}: ${answer.text}`)
  return shown ?? ''
}

export const bind = (stage: Stage, name: string, role: string, subjects: Obj['subjects']) =>
  make(stage, kinds.ClusterRoleBinding, '', name, {
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects: subjects ?? [],
  })

/** A key whose secret the attackers know. */
export async function hand(stage: Stage, name: string, spec: Spec): Promise<void> {
  stage.prover.give(await make(stage, kinds.OwnedAccessKey, '', name, { spec }))
}

export const rule = (verbs: string[], group: string, ...resources: string[]): PolicyRule => ({
  verbs,
  apiGroups: [group],
  resources,
})

/** The prerequisites of an attack: rules of the attackers, and objects. */
export type Gift = {
  readonly rules?: (stage: Stage) => PolicyRule[]
  readonly objects?: (stage: Stage, user: string) => Promise<void>
}

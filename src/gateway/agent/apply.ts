// Applies a planned write to the cluster. It never changes an object without the agent's labels, also if the cache is outdated.

import { ApiError, ignoreNotFound, isNotFound } from '../../api/errors.ts'
import type { Json, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { Wanted } from './desired-state.ts'
import { type Action, plan } from './plan.ts'
import { AgentProblem } from './problems.ts'
import { type Actual, actualOf, merged, type Owner, type Target, wantedObject } from './wanted-object.ts'

type Verb = 'create' | 'update' | 'delete'

export type ApplyOptions = {
  readonly resources: Resources
  readonly owner: Owner
  /** Resolves when a write may start. Rejects if the agent must not write. */
  readonly turn: () => Promise<void>
  readonly wrote: (target: Target, verb: Verb, error: unknown) => void
}

export type Applying = {
  readonly target: Target
  readonly wanted: Wanted | undefined
  readonly actual: Actual | undefined
  /** Called before every attempt, for the message of an error. */
  readonly trying: (action: Action) => void
}

const manager = { fieldManager: 'platform-agent' }
const maxTries = 5

/** Rejects with AgentProblem or the error of the cluster. */
export type Apply = (applying: Applying) => Promise<void>

export function openApply({ resources, owner, turn, wrote }: ApplyOptions): Apply {
  async function write<T>(target: Target, verb: Verb, send: () => Promise<T>): Promise<T> {
    await turn()
    try {
      const answer = await send()
      wrote(target, verb, undefined)
      return answer
    } catch (error) {
      wrote(target, verb, error)
      throw error
    }
  }

  const read = async ({ kind, ref }: Target): Promise<Resource | undefined> => {
    const found = await resources.get(kind, ref).catch(error => {
      if (isNotFound(error)) return undefined
      throw error
    })
    return found?.object
  }

  const create = (target: Target, { item }: Wanted) =>
    write(target, 'create', () =>
      resources.create(target.kind, target.ref.namespace, wantedObject(item, owner) as unknown as Json, manager),
    )

  /** The labels are read again: since the cache saw it, the object may have become somebody else's. */
  async function update(target: Target, wanted: Wanted): Promise<void> {
    const stored = await read(target)
    if (!stored || plan(wanted, actualOf(stored, owner.uid)) !== 'update') throw outdated()
    const body = merged(stored, wantedObject(wanted.item, owner)) as unknown as Json
    await write(target, 'update', () => resources.update(target.kind, target.ref, body, manager))
  }

  const remove = (target: Target, { uid, resourceVersion }: Actual) =>
    write(target, 'delete', () =>
      resources
        .delete(target.kind, target.ref, { preconditions: { uid, resourceVersion } })
        .then(() => {})
        .catch(ignoreNotFound),
    )

  async function perform(action: Action, { target, wanted, actual }: Applying): Promise<void> {
    if ((action === 'delete' || action === 'replace') && actual) await remove(target, actual)
    if ((action === 'create' || action === 'replace') && wanted) await create(target, wanted)
    if (action === 'update' && wanted) await update(target, wanted)
  }

  return async applying => {
    let { actual } = applying
    for (let tries = 1; ; tries++) {
      checkForeign(applying, actual)
      const action = plan(applying.wanted, actual)
      applying.trying(action)
      try {
        return await perform(action, { ...applying, actual })
      } catch (error) {
        if (tries === maxTries || !isOutdated(error, action)) throw error
      }
      const stored = await read(applying.target)
      actual = stored && actualOf(stored, owner.uid)
    }
  }
}

/** Nobody may change a foreign object. One that is not wanted is none of the agent's business. */
function checkForeign({ target, wanted }: Applying, actual: Actual | undefined): void {
  if (!wanted || !actual) return
  const { kind, ref } = target
  const what = `${kind.kind} ${ref.namespace ? `${ref.namespace}/` : ''}${ref.name}`
  if (!actual.isOwn)
    throw new AgentProblem(
      kind.kind === 'Secret' ? 'SecretExists' : 'BindingExists',
      `${what} exists and does not belong to this agent: delete it, or deliver under another name`,
    )
  if (actual.isTerminating)
    throw new AgentProblem('Terminating', `${what} is being deleted and waits for its finalizers`)
}

const outdated = () => new ApiError(409, 'Conflict', 'the object has changed')

/** Also 404 for an update: another one deleted it. For a create, 404 is about the namespace. */
const isOutdated = (error: unknown, action: Action) =>
  (error instanceof ApiError && error.code === 409) || (action === 'update' && isNotFound(error))

// What a ProjectSecret that follows a SharedSecret may be sent, and who may make it follow one (D30). Also the words for its source, which the controller uses too.

import { systemCaller } from '../api/caller.ts'
import { canonical } from '../api/encode.ts'
import { fieldForbidden, forbidden, invalid } from '../api/errors.ts'
import type { Kind, Question, Tools } from '../api/kind.ts'
import type { Json, Ref, Resource } from '../api/object.ts'

/** Who keeps the copy: the controller, under this name. */
export const syncManager = 'project-secret-sync'

type Named = { readonly name?: string | undefined; readonly namespace?: string | undefined }
type Owner = { readonly user?: string | undefined; readonly team?: string | undefined }
type Spec = {
  readonly sharedSecretRef?: Named | undefined
  readonly owner?: Owner | undefined
  readonly data?: { readonly [key: string]: string } | undefined
}
type Secret = Resource<Spec, unknown>

/** Where the data comes from; undefined: it is the secret's own. */
export function sourceOf(object: Pick<Secret, 'spec'> | undefined): Ref | undefined {
  const { name, namespace } = object?.spec?.sharedSecretRef ?? {}
  return name ? { namespace: namespace || 'default', name } : undefined
}

export const readSource = (source: Ref): Question => ({
  verb: 'get',
  target: { group: 'management.platform.sh', resource: 'sharedsecrets', ...source },
})

const isSame = (one: unknown, other: unknown) => canonical((one ?? null) as Json) === canonical((other ?? null) as Json)

/** The copy is the server's to write: whoever sends none, or the one that is there, leaves it; anything else is refused. */
export function keepCopy<T extends Secret>(kind: Kind, next: T, old: T | undefined, tools: Tools): T {
  const source = sourceOf(next)
  if (!source || tools.caller === systemCaller) return next
  const { data: sent, ...spec } = next.spec as Spec
  const kept = old?.spec?.data
  // Whoever may not see the copy must not find out by guessing what is in it.
  const isGuess = tools.written.some(path => path === 'spec.data' || path.startsWith('spec.data.'))
  if (isGuess || (sent !== undefined && !isSame(sent, kept ?? {})))
    throw invalid(kind, next.metadata.name ?? '', [
      fieldForbidden(
        'spec.data',
        `is the copy of SharedSecret ${source.namespace}/${source.name} that ${syncManager} keeps; leave it out, or change the SharedSecret`,
      ),
    ])
  return { ...next, spec: kept === undefined ? spec : { ...spec, data: kept } }
}

/** Whoever makes a secret follow another, and whoever it then belongs to, must be able to read that other one. */
export async function checkSource(kind: Kind, next: Secret, old: Secret | undefined, tools: Tools): Promise<void> {
  const source = sourceOf(next)
  if (!source || tools.caller === systemCaller) return
  const owner = next.spec?.owner
  if (isSame(source, sourceOf(old)) && isSame(owner, old?.spec?.owner)) return
  const question = readSource(source)
  const lacking: string[] = []
  if (!(await tools.judge(question)).allowed) lacking.push(`user "${tools.caller.username}"`)
  if (owner?.user || owner?.team) {
    const as = tools.callerOf(owner)
    if (!as || !tools.judgeOther(as, question).allowed) lacking.push(`the owner, ${printOwner(owner)}`)
  } else
    tools.warn('spec.owner: nobody owns this secret, so nothing is copied: the owner must be able to get the source')
  if (lacking.length)
    throw forbidden(
      kind,
      next.metadata.name ?? '',
      `spec.sharedSecretRef needs permission to get sharedsecrets "${source.name}" in the namespace "${source.namespace}"; missing for ${lacking.join(' and ')}`,
    )
}

export const printOwner = ({ user, team }: Owner) => (user ? `user "${user}"` : `team "${team}"`)

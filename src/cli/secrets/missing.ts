// Suggests another name, namespace or project for a secret that was not found.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError } from '../../api/errors.ts'
import type { Ref } from '../../api/object.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import type { Session } from '../session.ts'

/** Limits the search for a suggestion. */
const maxSearched = 500

type Missing = {
  readonly word: string
  /** Whether dots are part of the name (--key is set). */
  readonly isWhole: boolean
  readonly namespace: string
  readonly isOfProject: boolean
}

/** Adds the namespace and a suggestion to the error. Lists rows only, which does not read secrets (D35). */
export async function withHint({ rows }: Session, error: ApiError, missing: Missing): Promise<ApiError> {
  const { namespace, isOfProject } = missing
  const [shared, ofProjects] = await Promise.all([
    refsOf(rows.list(SharedSecret, { namespace: '', limit: maxSearched })),
    refsOf(rows.list(ProjectSecret, { namespace: '', limit: maxSearched })),
  ])
  const here = (isOfProject ? ofProjects : shared).filter(one => one.namespace === namespace)
  const hint = elsewhere(missing, shared, ofProjects) ?? nearHint(missing, here)
  const { details } = error.status
  return new ApiError(404, 'NotFound', `${error.message} in namespace ${namespace}${hint}`, details ? { details } : {})
}

const refsOf = (list: ReturnType<Session['rows']['list']>): Promise<Ref[]> =>
  list.then(
    ({ items }) => items.map(({ ref }) => ref),
    () => [],
  )

/** For a.b.c returns a.b.c, a.b and a. */
const namesIn = ({ word, isWhole }: Missing) =>
  isWhole ? [word] : word.split('.').map((_, left, steps) => steps.slice(0, steps.length - left).join('.'))

function elsewhere(missing: Missing, shared: readonly Ref[], ofProjects: readonly Ref[]) {
  for (const name of namesIn(missing)) {
    const isElsewhere = (ref: Ref) => ref.name === name && ref.namespace !== missing.namespace
    const one = shared.find(isElsewhere)
    if (one && missing.isOfProject) return `; a shared secret of that name is in namespace ${one.namespace}`
    if (one) return `; found in another namespace: -n ${one.namespace}`
    const other = ofProjects.find(isElsewhere)
    if (other) return `; found in a project: --project ${other.namespace.replace(/^p-/, '')}`
  }
  return undefined
}

function nearHint(missing: Missing, here: readonly Ref[]): string {
  const names = here.map(({ name }) => name)
  const hints = namesIn(missing)
    .toReversed()
    .map(name => didYouMean(name, names, one => `${one}${missing.word.slice(name.length)}`.replace(/\.+$/, '')))
  return hints.find(Boolean) ?? ''
}

// A secret that is not there: which one may have been meant, or where it is. secret.ts asks, once nothing was found.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError } from '../../api/errors.ts'
import type { Ref } from '../../api/object.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import type { Session } from '../session.ts'

/** More are not looked through for a hint. */
const most = 500

type Missing = {
  readonly word: string
  /** The word is the name, whatever dots it has. */
  readonly isWhole: boolean
  readonly namespace: string
  readonly isOfProject: boolean
}

/** The same error, with the place and a hint in it. Names alone are asked for, of what one may see: that reads no secret (D35). */
export async function withHint({ rows }: Session, error: ApiError, missing: Missing): Promise<ApiError> {
  const { namespace, isOfProject } = missing
  const [shared, ofProjects] = await Promise.all([
    refsOf(rows.list(SharedSecret, { namespace: '', limit: most })),
    refsOf(rows.list(ProjectSecret, { namespace: '', limit: most })),
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

/** In a.b.c, as it is written and as the name before each dot. */
const namesIn = ({ word, isWhole }: Missing) =>
  isWhole ? [word] : word.split('.').map((_, left, steps) => steps.slice(0, steps.length - left).join('.'))

function elsewhere(missing: Missing, shared: readonly Ref[], ofProjects: readonly Ref[]) {
  for (const name of namesIn(missing)) {
    const isElsewhere = (ref: Ref) => ref.name === name && ref.namespace !== missing.namespace
    const one = shared.find(isElsewhere)
    if (one && missing.isOfProject) return `; there is a shared one in namespace ${one.namespace}`
    if (one) return `; there is one in another namespace: -n ${one.namespace}`
    const other = ofProjects.find(isElsewhere)
    if (other) return `; there is one of a project: --project ${other.namespace.replace(/^p-/, '')}`
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

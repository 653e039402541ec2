// The problems of the agent: things that it cannot do, by target, and the list that it reports.

import { ApiError, isNotFound } from '../../api/errors.ts'
import { type ClusterProblem, maxProblems } from '../../kinds/cluster.ts'
import type { DesiredItem } from '../../kinds/cluster-desired.ts'
import type { Action } from './plan.ts'

/** A reason that the agent found itself. */
export class AgentProblem extends Error {
  readonly reason: string
  constructor(reason: string, message: string) {
    super(message)
    this.name = 'AgentProblem'
    this.reason = reason
  }
}

export interface Problems {
  /** An empty list: none. Returns whether that is news. */
  set(key: string, problems: readonly ClusterProblem[]): boolean
  has(key: string): boolean
  readonly size: number
  /** At most 200. The last one counts the others. */
  list(): readonly ClusterProblem[]
}

export function openProblems(changed: () => void): Problems {
  const byKey = new Map<string, readonly ClusterProblem[]>()
  const all = () => [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, problems]) => problems)
  return {
    set(key, problems) {
      if (JSON.stringify(byKey.get(key) ?? []) === JSON.stringify(problems)) return false
      if (problems.length) byKey.set(key, problems)
      else byKey.delete(key)
      changed()
      return true
    },
    has: key => byKey.has(key),
    get size() {
      let count = 0
      for (const problems of byKey.values()) count += problems.length
      return count
    },
    list() {
      const found = all()
      if (found.length <= maxProblems) return found
      const shown = found.slice(0, maxProblems - 1)
      const left = found.length - shown.length
      return [...shown, { reason: 'MoreProblems', message: `${left} more problems; the log of the agent has them` }]
    },
  }
}

/** The reason and message of a failed write. undefined: a retry may help, and the cluster said nothing about the object. */
export function reasonOf(error: unknown, action: Action): { reason: string; message: string } | undefined {
  if (error instanceof AgentProblem) return error
  if (!(error instanceof ApiError) || !error.reason) return undefined
  const { code, reason, message, details } = error
  if (code === 409 || code === 429 || code === 503 || code === 504) return undefined
  if (details?.causes?.some(cause => cause.reason === 'NamespaceTerminating'))
    return { reason: 'NamespaceTerminating', message }
  if (isNotFound(error) && (action === 'create' || action === 'replace'))
    return { reason: 'NamespaceNotFound', message }
  return { reason, message }
}

/** A failure of the cluster as a whole. */
export const clusterProblem = (error: Error) =>
  reasonOf(error, 'none') ?? { reason: 'ClusterUnreachable', message: error.message }

const [longestReason, longestMessage] = [128, 1024]

export function problemOf(
  item: DesiredItem,
  why: { readonly reason: string; readonly message: string },
): ClusterProblem {
  const { role, secret } = item
  const about = secret
    ? {
        secret: `${secret.source.namespace}/${secret.source.name}`,
        uid: secret.source.uid,
        namespace: secret.namespace,
        name: secret.name,
      }
    : { team: role?.team ?? '', clusterRole: role?.clusterRole ?? '', uid: role?.uid ?? '' }
  return { ...about, ...shortened(why, secret?.data) }
}

type Values = { readonly [key: string]: string }

/** The message of an admission webhook may contain anything, also a value of the Secret. */
export function shortened({ reason, message }: { reason: string; message: string }, data: Values = {}) {
  const isLeak = Object.values(data).some(value => shows(message, value))
  const text = isLeak
    ? 'the message of the cluster contains a value of the Secret; the audit log of the cluster has it'
    : message
  return { reason: reason.slice(0, longestReason), message: text.slice(0, longestMessage) }
}

const shortestSecret = 4

function shows(text: string, base64: string): boolean {
  const value = Buffer.from(base64, 'base64').toString('utf8').trim()
  return [base64, value].some(one => one.length >= shortestSecret && text.includes(one))
}

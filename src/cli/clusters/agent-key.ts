// The access key of an agent (D68).

import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { agentSubject, clusterOfAgent } from '../../kinds/cluster-desired.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { Session } from '../session.ts'

type Agent = { readonly name: string; readonly uid: string }
type Connected = Pick<Session, 'resources'>

/** Until the pod has the new key. Mounted Secrets are updated within a minute or two. */
const overlapSeconds = 3600

const subjectOf = ({ spec }: Resource) => String(spec?.['subject'] ?? '')

/** The keys of all agents that this cluster and earlier ones of its name have or had. */
export async function agentKeys({ resources }: Connected, name: string): Promise<Resource[]> {
  const all = await Array.fromAsync(listAll(resources, OwnedAccessKey))
  return all.filter(key => clusterOfAgent(subjectOf(key)) === name)
}

export type AgentKey = {
  readonly name: string
  /** Absent if the existing key is kept: the server does not show it again. */
  readonly secret: string | undefined
  readonly isKept: boolean
  readonly done: string
}

/** Creates a key. If the agent has one, keeps it, or rotates it. */
export async function ensureAgentKey(
  session: Connected,
  agent: Agent,
  { rotate, dryRun }: { readonly rotate: boolean; readonly dryRun: boolean },
): Promise<AgentKey> {
  const subject = agentSubject(agent)
  const found = (await agentKeys(session, agent.name)).find(
    key => subjectOf(key) === subject && key.spec?.['disabled'] !== true,
  )
  const options = { dryRun, fieldManager: 'platform', warn: () => {} }
  const name = found?.metadata.name ?? ''
  if (found && !rotate) return { name, secret: undefined, isKept: true, done: 'unchanged' }
  const { object } = found
    ? await session.resources.act(
        OwnedAccessKey,
        { namespace: '', name },
        'rotate',
        { spec: { overlapSeconds, force: true } },
        options,
      )
    : await session.resources.create(
        OwnedAccessKey,
        '',
        {
          metadata: { generateName: `cluster-${agent.name}-` },
          spec: {
            displayName: `Agent of cluster ${agent.name}`,
            subject,
            type: 'Other',
            scope: { roles: [{ role: 'agent' }] },
          },
        },
        options,
      )
  const secret = object.spec?.['key']
  return {
    name: object.metadata.name ?? name,
    secret: typeof secret === 'string' && secret ? secret : undefined,
    isKept: false,
    done: found ? 'rotated; the old key stays valid for one hour' : 'created',
  }
}

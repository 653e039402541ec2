// Cluster: a connected Kubernetes cluster, with its gateway, its projects, and what its agent reports (D68).

import { userTerm } from '../api/candidates.ts'
import { duplicateValue, type FieldError, invalidValue, isEnough, required } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import { defineKind, type KindOf, type ObjectPermission, type PermissionSubject } from '../api/kind.ts'
import { dnsLabel } from '../api/names.ts'
import type { Resource } from '../api/object.ts'
import { flag, list, longText, mapList, type Static, setOf, struct, text, time } from '../api/schema.ts'
import { agentSubject } from './cluster-desired.ts'
import { keepConditions } from './object-conditions.ts'
import { conditions, observedGeneration } from './shared-schema.ts'

const project = struct(
  'A project whose secrets may be delivered to namespaces of the cluster.',
  {
    project: text('Name of the project.', { maxLength: 63 }),
    namespaces: setOf(text(''), 'Namespaces of the cluster that belong to the project.'),
  },
  ['project', 'namespaces'],
)

const spec = struct('Desired state of the cluster.', {
  displayName: longText('Name shown to people.'),
  gateway: struct('Gateway of the cluster. Requests to the cluster through this server go there.', {
    url: text('URL of the gateway, https only.', { maxLength: 2048 }),
    caBundle: text('CA certificates of the gateway, PEM. Default: those of the operating system.', {
      maxLength: 65_536,
    }),
  }),
  projects: mapList(project, ['project'], 'Projects whose secrets may be delivered, with their namespaces.'),
  disabled: flag('When true, nothing is sent to the cluster, and its agent removes nothing.'),
})

const problem = struct('Something that the agent cannot do.', {
  team: text('Name of the team whose cluster role is not bound.'),
  clusterRole: text('Name of the cluster role.'),
  secret: text('ProjectSecret that is not delivered, as namespace/name.'),
  uid: text('uid of the team or of the ProjectSecret.'),
  namespace: text('Namespace of the Secret in the cluster.'),
  name: text('Name of the Secret in the cluster.'),
  reason: text('Reason, as one word.', { maxLength: 128 }),
  message: text('Message of the cluster.', { maxLength: 1024 }),
})

/** Problems are for people, and an agent that cannot do anything has one problem: the others are counted. */
export const maxProblems = 200

const status = struct('Observed state of the cluster, as its agent reports it.', {
  kubernetesVersion: text('Version of the cluster.', { maxLength: 128 }),
  agentVersion: text('Version of the agent.', { maxLength: 128 }),
  lastContact: time('Last report of the agent, by the clock of the server.'),
  desiredVersion: text('The resourceVersion of clusters/desired up to which everything is applied, or has a problem.', {
    maxLength: 64,
  }),
  cleanedUp: flag(
    'The agent has removed everything that it created in the cluster, because the Cluster is being deleted.',
  ),
  problems: list(problem, `Problems of the agent, at most ${maxProblems}.`, { maxItems: maxProblems }),
  conditions,
  observedGeneration,
})

/** Holds a deleted Cluster until its agent has removed what it created. */
export const agentFinalizer = 'management.platform.sh/agent'

export type ClusterObject = Resource<Static<typeof spec>, Static<typeof status>>
export type ClusterProblem = Static<typeof problem>

export const Cluster: KindOf<ClusterObject> = defineKind({
  kind: 'Cluster',
  plural: 'clusters',
  singular: 'cluster',
  categories: ['platform'],
  namespaced: false,
  description: 'Cluster is a connected Kubernetes cluster.',
  spec,
  status,
  statusSubresource: true,
  subresources: { desired: { verb: 'get', kind: 'ClusterDesired', isWatched: true } },
  columns: [
    {
      name: 'Display-Name',
      type: 'string',
      description: 'Name shown to people.',
      value: o => o.spec?.displayName as string,
    },
    {
      name: 'Ready',
      type: 'string',
      description: 'Whether the agent reports, and without problems.',
      value: o => readyOf(o)?.status,
    },
    {
      name: 'Version',
      type: 'string',
      description: 'Version of Kubernetes.',
      value: o => o.status?.kubernetesVersion as string,
    },
    {
      name: 'Last-Contact',
      type: 'date',
      description: 'Last report of the agent.',
      value: o => o.status?.lastContact as string,
    },
    {
      name: 'Reason',
      type: 'string',
      description: 'Reason of the Ready condition.',
      priority: 1,
      value: o => readyOf(o)?.reason,
    },
  ],
  assign: keepConditions,
  rights: agentRights,
  readers: ({ metadata: { name = '', uid = '' } }) => [userTerm(agentSubject({ name, uid }))],
  grants: clusterGrants,
  validate: next => [
    ...dnsLabel(next.metadata.name ?? '').map(one => invalidValue('metadata.name', next.metadata.name ?? '', one)),
    ...checkGateway(next.spec?.gateway),
    ...checkProjects(next.spec?.projects),
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Cluster',
    metadata: { name: 'prod', labels: { region: 'eu' } },
    spec: {
      displayName: 'Production',
      gateway: { url: 'https://gateway.prod.example.org' },
      projects: [{ project: 'shop', namespaces: ['shop', 'shop-jobs'] }],
    },
  },
})

type Condition = { readonly type?: string; readonly status?: string; readonly reason?: string }
const readyOf = (object: Resource): Condition | undefined =>
  ((object.status?.['conditions'] ?? []) as readonly Condition[]).find(({ type }) => type === 'Ready')

/** An agent reads what concerns its own cluster, and reports. */
function agentRights({ metadata: { name = '', uid = '' } }: ClusterObject, who: PermissionSubject): ObjectPermission[] {
  if (who.username !== agentSubject({ name, uid })) return []
  const because = 'the caller is the agent of the cluster'
  return [
    { verbs: ['get', 'watch'], subresources: ['desired'], subresourcesOnly: true, because },
    { verbs: ['get', 'update', 'patch'], subresources: ['status'], subresourcesOnly: true, because },
  ]
}

/** Labels, projects and the gateway decide what is sent to whom. A disabled cluster gets nothing. */
function clusterGrants({ metadata: { name = '', labels = {} }, spec = {} }: ClusterObject): Grant[] {
  const { disabled, gateway, projects = [] } = spec
  if (disabled) return []
  return [{ type: 'cluster', field: 'spec', name, labels, gateway: gateway ?? {}, projects }]
}

function checkGateway(gateway: Static<typeof spec>['gateway']): FieldError[] {
  const { url, caBundle } = gateway ?? {}
  const errors: FieldError[] = []
  if (gateway && !url) errors.push(required('spec.gateway.url', 'URL of the gateway'))
  if (url) {
    const problem = urlProblem(url)
    if (problem) errors.push(invalidValue('spec.gateway.url', url, problem))
  }
  if (caBundle && !/^\s*-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\s*$/.test(caBundle))
    errors.push(invalidValue('spec.gateway.caBundle', '…', 'must be certificates in PEM'))
  return errors
}

function urlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return 'must be a URL'
  if (url.protocol !== 'https:') return 'must begin with https://'
  if (url.username || url.password) return 'must not contain credentials'
  if (url.search || url.hash || url.pathname !== '/') return 'must be a scheme, a host and a port only'
  return undefined
}

function checkProjects(projects: readonly Static<typeof project>[] = []): FieldError[] {
  const errors: FieldError[] = []
  /** A namespace belongs to one project. */
  const taken = new Set<string>()
  for (const [index, { project: name = '', namespaces = [] }] of projects.entries()) {
    const at = `spec.projects[${index}]`
    if (isEnough(errors)) return errors
    if (name === '') errors.push(required(`${at}.project`, 'name of the project'))
    for (const one of name === '' ? [] : dnsLabel(name)) errors.push(invalidValue(`${at}.project`, name, one))
    if (namespaces.length === 0) errors.push(required(`${at}.namespaces`, 'namespaces of the project in the cluster'))
    for (const [position, namespace] of namespaces.entries())
      for (const one of checkTargetNamespace(namespace))
        if (!isEnough(errors)) errors.push(invalidValue(`${at}.namespaces[${position}]`, namespace, one))
    for (const [position, namespace] of namespaces.entries()) {
      if (taken.has(namespace) && !isEnough(errors))
        errors.push(duplicateValue(`${at}.namespaces[${position}]`, namespace))
      taken.add(namespace)
    }
  }
  return errors
}

/** The namespaces of Kubernetes itself are not for tenants (D69). */
export function checkTargetNamespace(namespace: string): readonly string[] {
  const problems = dnsLabel(namespace)
  return problems.length === 0 && namespace.startsWith('kube-')
    ? ['namespaces with the prefix kube- are reserved for Kubernetes']
    : problems
}

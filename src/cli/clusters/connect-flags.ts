// Flags of `platform connect cluster`, and the cluster that they describe.

import { labelValue, qualifiedName } from '../../api/names.ts'
import { type Flags, type Given, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { checkTargetNamespace } from '../../kinds/cluster.ts'
import { dryRunFlag, namespaceProblems } from '../flags.ts'
import type { WantedCluster } from './cluster-object.ts'
import { kubeFlags } from './kube-cluster.ts'

/** Disconnecting deletes the namespace, so that it must not be one that others use. */
const agentNamespaceFlag = {
  namespace: {
    type: 'text',
    value: 'NAMESPACE',
    what: 'Namespace of the agent in the cluster.',
    default: 'platform-agent',
    check: one =>
      one === 'default' || checkTargetNamespace(one).length
        ? ['must be a namespace of its own, such as platform-agent']
        : [],
  },
} as const satisfies Flags

export const connectFlags = {
  ...kubeFlags,
  'bindable-role': {
    type: 'list',
    value: 'ROLE',
    what: 'ClusterRole of the cluster that teams may get there, such as view.',
  },
  project: {
    type: 'list',
    value: 'PROJECT=NAMESPACE,…',
    what: 'Project whose secrets may be delivered to these namespaces of the cluster.',
  },
  label: { type: 'list', value: 'KEY=VALUE', what: 'Label of the cluster, for selectors.' },
  'display-name': { type: 'text', value: 'TEXT', what: 'Display name.', mayBeEmpty: true },
  'gateway-url': {
    type: 'text',
    value: 'URL',
    what: 'URL at which this server reaches the gateway of the cluster, for requests through this server.',
    check: one => (isGatewayUrl(one) ? [] : ['must be https://HOST[:PORT]']),
  },
  'gateway-ca': { type: 'text', value: 'FILE', what: 'CA certificates of the gateway, PEM. Requires --gateway-url.' },
  'gateway-tls-secret': {
    type: 'text',
    value: 'NAME',
    what: 'Secret of type kubernetes.io/tls with the certificate of the gateway. Default: a certificate of its own CA, new in every pod.',
    check: namespaceProblems,
  },
  ...agentNamespaceFlag,
  image: { type: 'text', value: 'IMAGE', what: 'Container image of this program.', default: 'platform:latest' },
  'service-account-issuer': {
    type: 'text',
    value: 'URL',
    what: "Issuer of the cluster's service-account tokens. The agent signs in with its token, without an access key.",
    check: one => (URL.parse(one)?.protocol === 'https:' ? [] : ['must be a URL that begins with https://']),
  },
  'rotate-key': { type: 'switch', what: 'Replace the access key of the agent. The old one stays valid for one hour.' },
  apply: { type: 'switch', what: 'Apply the manifests to the cluster instead of printing them.' },
  output: {
    type: 'text',
    short: 'o',
    value: 'FORMAT',
    what: 'Format of the printed manifests.',
    choices: ['yaml', 'json'],
    default: 'yaml',
  },
  ...dryRunFlag,
} as const satisfies Flags

type ConnectFlags = Given<typeof connectFlags>['flags']

function isGatewayUrl(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.pathname === '/' && !url.search && !url.hash && !url.username
}

/** `caBundle`: the content of --gateway-ca. Throws UsageError with all problems. */
export function wantedCluster(name: string, flags: ConnectFlags, caBundle: string | undefined): WantedCluster {
  const problems = namespaceProblems(name).map(one => `NAME ${quoted(name)} ${one}`)
  const labels = Object.fromEntries(flags.label.map(text => readLabel(text, problems)))
  const projects = readProjects(flags.project, problems)
  if (flags['service-account-issuer'] && flags['rotate-key'])
    problems.push('--rotate-key and --service-account-issuer exclude each other: the agent has no access key')
  if (flags['gateway-ca'] && !flags['gateway-url']) problems.push('--gateway-ca requires --gateway-url')
  for (const { project, namespaces } of projects)
    if (namespaces.includes(flags.namespace))
      problems.push(`--project ${project}: ${flags.namespace} is the namespace of the agent; it contains its key`)
  if (problems.length) throw new UsageError(problems)
  const url = flags['gateway-url']?.replace(/\/$/, '')
  return {
    name,
    labels,
    displayName: flags['display-name'],
    gateway: url ? { url, ...(caBundle === undefined ? {} : { caBundle }) } : undefined,
    projects: projects.length ? projects : undefined,
  }
}

function readLabel(text: string, problems: string[]): [string, string] {
  const [, key = '', value = ''] = /^([^=]+)=(.*)$/.exec(text) ?? []
  const wrong = key === '' ? ['must be KEY=VALUE'] : [...qualifiedName(key), ...labelValue(value)]
  problems.push(...wrong.map(one => `--label: ${quoted(text)} ${one}`))
  return [key, value]
}

function readProjects(texts: readonly string[], problems: string[]) {
  const found = new Map<string, Set<string>>()
  for (const text of texts) {
    const [, project = '', list = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
    const namespaces = list.split(',').filter(Boolean)
    if (project === '' || namespaces.length === 0)
      problems.push(`--project: ${quoted(text)} must be PROJECT=NAMESPACE,NAMESPACE`)
    else found.set(project, new Set([...(found.get(project) ?? []), ...namespaces]))
  }
  return [...found].map(([project, namespaces]) => ({ project, namespaces: [...namespaces] }))
}

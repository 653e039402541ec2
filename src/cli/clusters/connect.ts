// `platform connect cluster`: creates the Cluster and the key of its agent, and prints or applies the agent's manifests (D68).

import { ApiError } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import { defineCommand, type Io, SeveralErrors, UsageError } from '../../host/command.ts'
import type { ClusterObject } from '../../kinds/cluster.ts'
import { Secret } from '../../reconcile/kubernetes-kinds.ts'
import type { OpenedCluster } from '../../transport/open-cluster.ts'
import { dryRunNote, isDryRun } from '../flags.ts'
import { printJson } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { type AgentKey, ensureAgentKey } from './agent-key.ts'
import { ensureCluster } from './cluster-object.ts'
import { connectFlags, wantedCluster } from './connect-flags.ts'
import { applyAll, checkNamespace, openKube } from './kube-cluster.ts'
import { keySecretName, manifestsOf } from './manifests.ts'
import { prune, pruneText } from './prune.ts'
import { authEntryText } from './service-account.ts'

export const connectCluster = defineCommand({
  words: ['connect', 'cluster'],
  what: 'Connect a Kubernetes cluster: create its Cluster object and a key for its agent, and print the manifests of the agent.',
  examples: [
    {
      what: 'Connect the cluster of a kubeconfig context, whose role view teams may get',
      command: 'platform connect cluster prod --context prod-admin --bindable-role view --apply',
    },
    {
      what: 'Allow secrets of the project shop in two namespaces',
      command: 'platform connect cluster prod --project shop=shop,shop-jobs --apply',
    },
    { what: 'Review the manifests first', command: 'platform connect cluster prod > agent.yaml' },
  ],
  runsToEnd: true,
  flags: connectFlags,
  positionals: [{ name: 'NAME', what: 'name of the cluster, in paths and scopes' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const caFile = flags['gateway-ca']
    const caBundle = caFile === undefined ? undefined : new TextDecoder().decode(await io.readFile(caFile))
    const wanted = wantedCluster(name, flags, caBundle)
    const dryRun = isDryRun(flags)
    const session = await openSession(io, { context: io.env['PLATFORM_CONTEXT'] || undefined })
    let kube: OpenedCluster | undefined
    try {
      if (flags.apply) kube = await openKube(io, flags, session.server)
      // Before any change: an unreachable cluster must not leave a key behind that nobody has.
      if (kube) await checkNamespace(kube.resources, flags.namespace, name)
      const issuer = await issuerOf(session)
      // The manifests go to standard output, so that they can be piped.
      const report = (line: string) => (flags.apply ? io.out : io.err)(`${line}${dryRunNote(flags)}\n`)
      const { cluster, done } = await ensureCluster(session, wanted, dryRun)
      report(`cluster/${name} ${done}`)
      const agent = { name, uid: cluster.metadata.uid ?? '' }
      const tokens = flags['service-account-issuer']
      const key = tokens ? undefined : await ensureAgentKey(session, agent, { rotate: flags['rotate-key'], dryRun })
      if (key) report(`accesskey/${key.name} ${key.done}`)
      const secretNamespaces = secretNamespacesOf(cluster, flags.namespace)
      const usesServiceAccount = tokens !== undefined
      const manifests = manifestsOf({
        cluster: name,
        namespace: flags.namespace,
        image: flags.image,
        bindableRoles: [...new Set(flags['bindable-role'])],
        secretNamespaces,
        issuer,
        server: session.server,
        ca: session.ca,
        key: !key || key.isKept ? undefined : (key.secret ?? '(created without --dry-run)'),
        usesServiceAccount,
        gatewayUrl: cluster.spec?.gateway?.url,
        tlsSecret: flags['gateway-tls-secret'],
      })
      if (kube) {
        if (key) await checkKey(kube.resources, flags.namespace, key)
        const failures = await applyAll(kube.resources, manifests, { dryRun, report })
        const pruned = { ...agent, namespace: flags.namespace, usesServiceAccount }
        if (!failures.length) failures.push(...(await prune(kube.resources, pruned, { manifests, dryRun, report })))
        if (failures.length) throw new SeveralErrors(failures)
      } else {
        const context = flags.context ? ` --context ${flags.context}` : ''
        printManifests(io, manifests, { output: flags.output, key, context })
        if (done !== 'created') io.err(pruneText(name, [flags.namespace, ...secretNamespaces], context))
      }
      if (tokens) io.err(authEntryText({ ...agent, namespace: flags.namespace, issuer: tokens, audience: issuer }))
      giveHints(io, name, { session, cluster, flags })
      return 0
    } finally {
      session.close()
      kube?.close()
    }
  },
})

/** As in the tokens. It may differ from the URL that the user signed in to. */
async function issuerOf({ server, fetch }: Session): Promise<string> {
  const response = await fetch(`${server}/.well-known/openid-configuration`, {
    headers: { Accept: 'application/json' },
  })
  const { issuer } = response.ok ? ((await response.json()) as { readonly issuer?: unknown }) : {}
  if (typeof issuer !== 'string' || !URL.canParse(issuer))
    throw new ApiError(
      502,
      'BadGateway',
      `${server}/.well-known/openid-configuration does not name the issuer of tokens (status ${response.status}): check that the URL of the context is that of the management API`,
    )
  return issuer
}

function secretNamespacesOf({ spec }: ClusterObject, agent: string): string[] {
  const all = (spec?.projects ?? []).flatMap(({ namespaces }) => namespaces ?? [])
  if (all.includes(agent))
    throw new UsageError([
      `spec.projects of the cluster contains ${agent}, the namespace of the agent: use --namespace`,
    ])
  return [...new Set(all)]
}

/** The server shows a key once, so an existing one cannot be applied again. */
async function checkKey(resources: Session['resources'], namespace: string, { isKept }: AgentKey): Promise<void> {
  if (!isKept) return
  try {
    await resources.get(Secret, { namespace, name: keySecretName })
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error
    throw new Error(
      `the Secret ${keySecretName} does not exist in namespace ${namespace}, and the server shows a key only once: create a new key with --rotate-key`,
    )
  }
}

type Printing = { readonly output: string; readonly key: AgentKey | undefined; readonly context: string }

function printManifests(io: Io, manifests: readonly JsonObject[], { output, key, context }: Printing): void {
  if (key?.secret !== undefined && io.isTerminal)
    io.err('platform: warning: the manifests contain the access key of the agent: pipe them to kubectl or to a file\n')
  if (output === 'json') printJson(io, { apiVersion: 'v1', kind: 'List', items: manifests }, 'json')
  else
    for (const one of manifests) {
      io.out('---\n')
      printJson(io, one, 'yaml')
    }
  io.err(`Apply them: kubectl${context} apply --server-side --field-manager platform -f FILE\n`)
  if (key?.isKept) io.err('The manifests do not contain the existing key of the agent. For a new one: --rotate-key\n')
}

type Hints = {
  readonly session: Session
  readonly cluster: ClusterObject
  readonly flags: { readonly 'bindable-role': readonly string[]; readonly 'gateway-tls-secret': string | undefined }
}

function giveHints(io: Io, name: string, { session, cluster, flags }: Hints): void {
  const roles = [...new Set(flags['bindable-role'])]
  const warn = (text: string) => io.err(`platform: warning: ${text}\n`)
  if (roles.includes('cluster-admin'))
    warn('with the bindable role cluster-admin, the agent can give anybody every permission in the cluster')
  if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(session.server).hostname))
    warn(`the agent connects to ${session.server}, which another machine cannot reach; sign in with its public URL`)
  if (cluster.spec?.gateway?.url && !flags['gateway-tls-secret'])
    warn('the gateway makes a new CA in every pod: use --gateway-tls-secret and --gateway-ca for a stable certificate')
  if (roles.length === 0) return
  const rule = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: `cluster-${name}` },
    rules: [
      {
        apiGroups: ['management.platform.sh'],
        resources: ['clusters/clusterroles'],
        resourceNames: roles.map(role => `${name}:${role}`),
        verbs: ['bind'],
      },
    ],
  }
  io.err(
    `Administrators can give these roles to teams now. To let others do it:\nkubectl apply -f - <<'END'\n${JSON.stringify(rule)}\nEND\nkubectl create clusterrolebinding cluster-${name} --clusterrole=cluster-${name} --user=USER\n`,
  )
}

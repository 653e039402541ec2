// The whole way: connect a cluster, run the agent with the applied configuration, give a role, deliver a secret, and remove all of it.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import type { Kind } from '../../src/api/kind.ts'
import { ClusterRole, ClusterRoleBinding, Role } from '../../src/kinds/rbac.ts'
import { ConfigMap, Secret } from '../../src/vcluster/sync/kinds.ts'
import { must, ours, teams } from '../access/people.ts'
import { signedIn } from '../support/cli-home.ts'
import { type KubeRequest, openConnectable } from '../support/connected-cluster.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn({ storage: 'memory' })
const kube = await openConnectable(home.directory)
after(() => kube.close())

const found = async (kind: Kind, namespace: string, name: string) => {
  try {
    return (await kube.resources.get(kind, { namespace, name })).object as unknown as {
      readonly data: { readonly [key: string]: string }
    }
  } catch {
    return undefined
  }
}

type Rule = {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
  /** Of a Role. */
  readonly namespace: string
}

async function agentRules(): Promise<Rule[]> {
  const rules: Rule[] = []
  for (const kind of [ClusterRole, Role])
    for (const { object, ref } of (await kube.resources.list(kind)).items)
      if (ref.name === 'platform-agent-prod')
        for (const rule of (object as unknown as { readonly rules: readonly Rule[] }).rules)
          rules.push({ ...rule, namespace: ref.namespace })
  return rules
}

const isAllowed = (rule: Rule, { verb, group, resource, namespace, name }: KubeRequest) =>
  rule.apiGroups.includes(group) &&
  rule.resources.includes(resource) &&
  rule.verbs.includes(verb) &&
  (rule.namespace === '' || rule.namespace === namespace) &&
  (rule.resourceNames === undefined || rule.resourceNames.includes(name))

test('the agent of a connected cluster works with the applied manifests, and disconnect removes everything', async () => {
  await kube.resources.create(ClusterRole, '', { metadata: { name: 'view' }, rules: [] })
  const before = await kube.objects()
  const kubeFlags = ['--kubeconfig', kube.kubeconfig]
  const flags = ['--apply', '--bindable-role', 'view', '--project', 'shop=shop', ...kubeFlags]
  await home.ok(['connect', 'cluster', 'prod', ...flags])
  const config = await found(ConfigMap, 'platform-agent', 'platform-agent')
  const key = await found(Secret, 'platform-agent', 'platform-agent-key')
  const directory = join(home.directory, '.local/share/platform/keys/agent')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'key'), Buffer.from(key?.data['key'] ?? '', 'base64'))
  writeFileSync(join(directory, 'ca.crt'), config?.data['ca.crt'] ?? '')
  // The pod has these files elsewhere, and reaches its cluster with its service account.
  const own = {
    ...parse(config?.data['gateway.yaml'] ?? ''),
    listen: '127.0.0.1:0',
    status: '127.0.0.1:0',
    tls: { directory: 'tls' },
    issuer: { url: server.https, ca: 'ca.crt' },
    service: { keyFile: 'key' },
    clusters: [{ name: 'prod', kubeconfig: kube.kubeconfig }],
    audit: { log: 'off' },
  }
  writeFileSync(join(directory, 'gateway.yaml'), JSON.stringify(own))
  const agent = home.start(['gateway', '--config', join(directory, 'gateway.yaml')])
  agent.stdout?.resume()
  const rules = await agentRules()
  kube.requests.length = 0
  const roles = [{ name: 'view', clusters: { names: ['prod'] } }]
  await must(server.request('POST', teams, { body: { metadata: { name: 'web' }, spec: { clusterRoles: roles } } }))
  const secret = {
    metadata: { name: 'registry' },
    spec: {
      owner: { user: 'admin' },
      stringData: { password: 'canary-of-the-registry' },
      deliver: [{ clusters: { names: ['prod'] } }],
    },
  }
  await must(server.request('POST', `${ours}/namespaces/p-shop/projectsecrets`, { body: secret }))
  await eventually('the secret is delivered', async () => {
    const { data } = (await found(Secret, 'shop', 'registry')) ?? {}
    return Buffer.from(data?.['password'] ?? '', 'base64').toString() === 'canary-of-the-registry'
  })
  await eventually('the role is bound', async () => {
    const { items } = await kube.resources.list(ClusterRoleBinding)
    return items.some(({ object }) => JSON.stringify(object).includes('platform:team:web'))
  })
  await eventually('the agent reports', async () => {
    const { status } = await must(server.request('GET', `${ours}/clusters/prod`))
    return status?.lastContact !== undefined && (status.problems ?? []).length === 0
  })
  const at = `${ours}/namespaces/p-shop/projectsecrets/registry`
  const headers = { 'content-type': 'application/merge-patch+json' }
  const change = (path: string, spec: object) => must(server.request('PATCH', path, { body: { spec }, headers }))
  await change(at, { stringData: { password: 'canary-of-another' } })
  await eventually('the change is delivered', async () => {
    const { data } = (await found(Secret, 'shop', 'registry')) ?? {}
    return Buffer.from(data?.['password'] ?? '', 'base64').toString() === 'canary-of-another'
  })
  await change(`${teams}/web`, { clusterRoles: [] })
  await change(at, { deliver: null })
  await eventually('the copy is deleted', async () => (await found(Secret, 'shop', 'registry')) === undefined)
  await eventually('the role is no longer bound', async () => {
    const { items } = await kube.resources.list(ClusterRoleBinding)
    return !items.some(({ object }) => JSON.stringify(object).includes('platform:team:web'))
  })
  await change(at, { deliver: [{ clusters: { names: ['prod'] } }] })
  await eventually('it is delivered again', async () => (await found(Secret, 'shop', 'registry')) !== undefined)
  // The stand-in allows everything, so the requests are compared with the applied roles.
  const denied = kube.requests.filter(one => !rules.some(rule => isAllowed(rule, one)))
  assert.deepEqual(denied, [])
  for (const verb of ['create', 'update', 'delete', 'watch'])
    assert.ok(
      kube.requests.some(one => one.resource === 'secrets' && one.verb === verb),
      verb,
    )
  // Its agent has reported, so its objects must be there.
  const other = await openConnectable(home.directory, 'other.kubeconfig')
  const wrong = await home.run(['disconnect', 'cluster', 'prod', '--yes', '--kubeconfig', other.kubeconfig])
  await other.close()
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /has nothing of cluster prod.*nothing was changed.*--context/)
  const mistaken = await home.run(['disconnect', 'cluster', 'prod', '--yes', '--kubeconfig', server.kubeconfig])
  assert.match(mistaken.stderr, /is the kubeconfig of the management API, not of the cluster/)
  await home.ok(['disconnect', 'cluster', 'prod', '--yes', ...kubeFlags])
  assert.deepEqual(await kube.objects(), before)
  assert.equal((await server.request('GET', `${ours}/clusters/prod`)).status, 404)
  // The deletion of the Deployment ends the agent. It restores nothing until then.
  const ended = new Promise(resolve => agent.once('exit', resolve))
  agent.kill('SIGTERM')
  await ended
  assert.deepEqual(await kube.objects(), before)
})

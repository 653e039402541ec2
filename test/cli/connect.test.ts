// `platform connect cluster` and `disconnect cluster`: the objects on both sides, exact permissions, repeated runs, and a clean end.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import type { Resource } from '../../src/api/object.ts'
import { KubeNamespace } from '../../src/cli/clusters/kube-kinds.ts'
import { agentSubject } from '../../src/kinds/cluster-desired.ts'
import { ClusterRole, ClusterRoleBinding, Role } from '../../src/kinds/rbac.ts'
import { ConfigMap, Secret } from '../../src/vcluster/sync/kinds.ts'
import { keys, must, ours } from '../access/people.ts'
import { signedIn } from '../support/cli-home.ts'
import { openConnectable } from '../support/connected-cluster.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'

const { server, home } = await signedIn({ storage: 'memory' })
const kube = await openConnectable(home.directory)
after(() => kube.close())

const clusters = `${ours}/clusters`
const kubeFlags = ['--kubeconfig', kube.kubeconfig, '--context', 'here']
const connect = (name: string, ...flags: readonly string[]) => ['connect', 'cluster', name, ...flags]
const applied = (name: string, ...flags: readonly string[]) => connect(name, '--apply', ...kubeFlags, ...flags)
const disconnect = (name: string, ...flags: readonly string[]) => ['disconnect', 'cluster', name, '--yes', ...flags]
const agentKeysOf = async (name: string) =>
  ((await must(server.request('GET', keys))).items as Resource[]).filter(({ spec }) =>
    String(spec?.['subject'] ?? '').startsWith(`platform:cluster:${name}:`),
  )
const rolesOf = (namespace: string) => ['Role', 'RoleBinding'].map(kind => `${kind}/${namespace}/platform-agent-pruned`)
const ofServer = async () => {
  const bindings = await must(server.request('GET', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'))
  return [
    ...(await must(server.request('GET', clusters))).items,
    ...(await must(server.request('GET', keys))).items,
    ...bindings.items,
  ].map(({ metadata }: Resource) => `${metadata.name} ${metadata.resourceVersion}`)
}

test('connect prints manifests with exactly the permissions of the agent, and keeps the key on a second run', async () => {
  const before = await ofServer()
  const flags = ['--bindable-role', 'view', '--bindable-role', 'edit', '--project', 'shop=shop,shop-jobs']
  const first = await home.run(connect('prod', ...flags, '--label', 'region=eu', '--display-name', 'Production'))
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stderr, /^cluster\/prod created\naccesskey\/cluster-prod-\w+ created\n/)
  assert.match(first.stderr, /"resourceNames":\["prod:view","prod:edit"\],"verbs":\["bind"\]/)
  const cluster = await must(server.request('GET', `${clusters}/prod`))
  assert.deepEqual(cluster.metadata.labels, { region: 'eu' })
  assert.deepEqual(cluster.spec, {
    displayName: 'Production',
    projects: [{ project: 'shop', namespaces: ['shop', 'shop-jobs'] }],
  })
  const subject = agentSubject({ name: 'prod', uid: cluster.metadata.uid })
  const [key, ...others] = await agentKeysOf('prod')
  assert.equal(others.length, 0)
  assert.deepEqual(key?.spec, {
    displayName: 'Agent of cluster prod',
    subject,
    type: 'Other',
    scope: { roles: [{ role: 'agent' }] },
  })
  const objects = parseAllDocuments(first.stdout).map(one => one.toJS())
  for (const { metadata } of objects) assert.equal(metadata.labels['platform.sh/cluster'], 'prod')
  const found = (kind: string, namespace?: string) =>
    objects.filter(one => one.kind === kind && (namespace === undefined || one.metadata.namespace === namespace))
  const write = ['get', 'list', 'watch', 'create', 'update', 'delete']
  const rbac = ['rbac.authorization.k8s.io']
  assert.deepEqual(found('ClusterRole')[0].rules, [
    { apiGroups: rbac, resources: ['clusterrolebindings'], verbs: write },
    { apiGroups: rbac, resources: ['clusterroles'], resourceNames: ['view', 'edit'], verbs: ['get', 'bind'] },
    { apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectaccessreviews'], verbs: ['create'] },
  ])
  assert.deepEqual(found('Service'), [])
  for (const namespace of ['shop', 'shop-jobs']) {
    assert.deepEqual(found('Role', namespace)[0].rules, [{ apiGroups: [''], resources: ['secrets'], verbs: write }])
    assert.deepEqual(found('RoleBinding', namespace)[0].subjects, [
      { kind: 'ServiceAccount', name: 'platform-agent', namespace: 'platform-agent' },
    ])
  }
  assert.deepEqual(found('Role', 'platform-agent')[0].rules, [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'update'] },
  ])
  assert.equal(found('Role').length, 3)
  const [{ data }] = found('Secret')
  const secret = Buffer.from(data.key, 'base64').toString()
  const used = await server.request('GET', `${ours}/tokenrevocations`, { key: secret })
  assert.equal(used.status, 200, used.text)
  const config = parse(found('ConfigMap')[0].data['gateway.yaml'])
  assert.deepEqual(config.agent, { cluster: 'prod', namespace: 'platform-agent' })
  assert.deepEqual(config.clusters, [{ name: 'prod', inCluster: true }])
  assert.equal(config.issuer.url, server.https)
  assert.equal(found('ConfigMap')[0].data['ca.crt'], server.ca)

  const between = await ofServer()
  const second = await home.run(connect('prod', ...flags, '--label', 'region=eu', '-o', 'json'))
  assert.match(second.stderr, /^cluster\/prod unchanged\naccesskey\/cluster-prod-\w+ unchanged\n/)
  assert.deepEqual(await ofServer(), between)
  const { items } = JSON.parse(second.stdout)
  assert.equal(
    items.some(({ kind }: Resource) => kind === 'Secret'),
    false,
  )
  const third = await home.run(connect('prod', ...flags, '--label', 'region=us', '--display-name', 'P', '--rotate-key'))
  assert.match(third.stderr, /^cluster\/prod changed: label region, spec\.displayName\naccesskey\/\S+ rotated/)
  const rotated = parseAllDocuments(third.stdout)
    .map(one => one.toJS())
    .find(({ kind }) => kind === 'Secret')
  assert.notEqual(Buffer.from(rotated.data.key, 'base64').toString(), secret)

  const ended = await home.run(disconnect('prod', '--keep-cluster'))
  assert.equal(ended.code, 0, ended.stderr)
  assert.match(
    ended.stderr,
    /^Not removed from the cluster: the agent and its permissions \(label platform\.sh\/cluster=prod\)/,
  )
  assert.deepEqual(await ofServer(), before)
})

test('--apply and disconnect leave nothing behind; a second --apply changes nothing', async () => {
  const before = await kube.objects()
  const flags = ['--bindable-role', 'view', '--project', 'shop=shop']
  const first = await home.ok(applied('dev', ...flags))
  assert.match(first, /^deployment\/platform-agent in namespace platform-agent created$/m)
  assert.doesNotMatch(first, /unchanged|changed/)
  const objects = await kube.objects()
  const second = await home.ok(applied('dev', ...flags))
  for (const line of second.trim().split('\n')) assert.match(line, / unchanged$/)
  assert.deepEqual(await kube.objects(), objects)
  assert.match(await home.ok(applied('dev', '--bindable-role', 'edit')), /^clusterrole\/platform-agent-dev changed$/m)
  const rules = (await kube.resources.get(ClusterRole, { namespace: '', name: 'platform-agent-dev' })).object as object
  assert.match(JSON.stringify(rules), /"resourceNames":\["edit"\]/)
  // Without --project, the projects of the Cluster stay.
  await kube.resources.get(Role, { namespace: 'shop', name: 'platform-agent-dev' })

  const ref = { namespace: 'platform-agent', name: 'platform-agent-key' }
  const held = (await kube.resources.get(Secret, ref)).object as unknown as { readonly data: { readonly key: string } }
  await kube.resources.delete(Secret, ref)
  assert.match(
    await home.fails(1, applied('dev')),
    /the server shows a key only once: create a new key with --rotate-key/,
  )
  await home.ok(applied('dev', '--rotate-key'))
  const renewed = (await kube.resources.get(Secret, ref)).object as unknown as typeof held
  assert.notEqual(renewed.data.key, held.data.key)

  const { uid } = (await must(server.request('GET', `${clusters}/dev`))).metadata
  const labels = { 'platform.sh/cluster-uid': uid }
  const made = { metadata: { name: 'registry', namespace: 'shop', labels }, data: {} }
  await kube.resources.create(Secret, 'shop', made)
  await kube.resources.create(Secret, 'shop', { metadata: { name: 'theirs' }, data: {} })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
  await kube.resources.create(ClusterRoleBinding, '', { metadata: { name: 'team', labels }, roleRef, subjects: [] })
  const dry = await home.ok(disconnect('dev', ...kubeFlags, '--dry-run=server'))
  assert.match(dry, /^secret\/registry in namespace shop deleted \(dry run\)$/m)
  const gone = await home.ok(disconnect('dev', ...kubeFlags))
  assert.match(gone, /^accesskey\/\S+ deleted\ndeployment\/platform-agent /)
  assert.match(gone, /\ncluster\/dev deleted\n$/)
  assert.deepEqual(await kube.objects(), [...before, 'Secret/shop/theirs'].sort())
  assert.deepEqual(await agentKeysOf('dev'), [])
  assert.equal((await server.request('GET', `${clusters}/dev`)).status, 404)
  assert.match(await home.fails(3, disconnect('dev', ...kubeFlags)), /cluster dev is not connected/)
  await kube.resources.delete(Secret, { namespace: 'shop', name: 'theirs' })
})

test('--apply removes what an earlier run applied and nobody wants any more', async () => {
  for (const name of ['jobs', 'old']) await kube.resources.create(KubeNamespace, '', { metadata: { name } })
  const before = await kube.objects()
  await home.ok(applied('pruned', '--project', 'shop=shop,jobs,old', '--namespace', 'agent'))
  const { uid } = (await must(server.request('GET', `${clusters}/pruned`))).metadata
  const labels = { 'platform.sh/managed-by': 'agent', 'platform.sh/cluster-uid': uid }
  for (const namespace of ['shop', 'jobs'])
    await kube.resources.create(Secret, namespace, { metadata: { name: 'registry', labels }, data: {} })
  const record = { namespace: 'agent', name: `platform-agent-${uid}` }
  const recorded = { metadata: { name: record.name, labels }, data: { namespaces: 'jobs\nshop' } }
  await kube.resources.create(ConfigMap, 'agent', recorded)
  // Of others: without a label of the agent, or with another name or cluster.
  const names = { 'app.kubernetes.io/name': 'platform-agent', 'platform.sh/cluster': 'pruned' }
  const foreign = [
    { name: 'platform-agent-pruned', namespace: 'default', labels: { 'platform.sh/cluster': 'pruned' } },
    { name: 'theirs', namespace: 'jobs', labels: names },
    { name: 'platform-agent-other', namespace: 'jobs', labels: { ...names, 'platform.sh/cluster': 'other' } },
  ]
  for (const metadata of foreign) await kube.resources.create(Role, metadata.namespace, { metadata, rules: [] })
  const theirs = { name: 'theirs', labels: { 'platform.sh/cluster-uid': uid } }
  await kube.resources.create(Secret, 'jobs', { metadata: theirs, data: {} })

  const flags = ['--project', 'shop=shop', '--namespace', 'agent']
  const printed = await home.run(connect('pruned', ...flags))
  const [, labelSelector, fieldSelector] =
    /kubectl delete rolebindings,roles -A -l (\S+) --field-selector (\S+)\n/.exec(printed.stderr) ?? []
  assert.ok(labelSelector && fieldSelector, printed.stderr)
  const selected = await kube.resources.list(Role, { labelSelector, fieldSelector })
  assert.deepEqual(selected.items.map(({ ref }) => `${ref.namespace}/${ref.name}`).sort(), [
    'jobs/platform-agent-pruned',
    'old/platform-agent-pruned',
  ])
  const all = await kube.objects()
  const dry = await home.ok(applied('pruned', ...flags, '--dry-run=server'))
  assert.match(dry, /^role\/platform-agent-pruned in namespace jobs deleted \(dry run\)$/m)
  assert.deepEqual(await kube.objects(), all)
  const deleted = (await home.ok(applied('pruned', ...flags))).split('\n').filter(line => line.endsWith(' deleted'))
  assert.deepEqual(deleted, [
    'secret/registry in namespace jobs deleted',
    'rolebinding/platform-agent-pruned in namespace jobs deleted',
    'rolebinding/platform-agent-pruned in namespace old deleted',
    'role/platform-agent-pruned in namespace jobs deleted',
    'role/platform-agent-pruned in namespace old deleted',
  ])
  const gone = ['Secret/jobs/registry', ...['jobs', 'old'].flatMap(at => rolesOf(at))]
  assert.deepEqual(
    await kube.objects(),
    all.filter(one => !gone.includes(one)),
  )
  const { data } = (await kube.resources.get(ConfigMap, record)).object as unknown as typeof recorded
  assert.equal(data.namespaces, 'shop')
  assert.doesNotMatch(await home.ok(applied('pruned', ...flags)), /deleted/)

  await home.ok(disconnect('pruned', ...kubeFlags))
  for (const { name, namespace } of foreign.slice(2)) await kube.resources.delete(Role, { namespace, name })
  assert.deepEqual(await kube.objects(), before)
  for (const name of ['jobs', 'old']) await kube.resources.delete(KubeNamespace, { namespace: '', name })
})

test('connect and disconnect finish even if nobody reads their output', async () => {
  const before = await kube.objects()
  const unread = async (args: readonly string[]) => {
    const { stderr } = await home.exec(args, { within: '{ "$@"; echo "exit code $?" >&2; } | true' })
    assert.match(stderr, /^exit code 0$/m)
  }
  await unread(applied('unread'))
  assert.ok((await kube.objects()).includes('Deployment/platform-agent/platform-agent'))
  await unread(disconnect('unread', ...kubeFlags))
  assert.deepEqual(await kube.objects(), before)
  assert.equal((await server.request('GET', `${clusters}/unread`)).status, 404)
})

test('a dry run changes nothing on either side', async () => {
  const [there, here] = [await kube.objects(), await ofServer()]
  const printed = await home.ok(connect('stage', '--dry-run=server', '--bindable-role', 'view'))
  assert.match(printed, /kind: Deployment/)
  assert.match(await home.ok(applied('stage', '--dry-run=server')), /^cluster\/stage created \(dry run\)$/m)
  assert.deepEqual([await kube.objects(), await ofServer()], [there, here])
})

test('an unreachable cluster changes nothing, and disconnect then names --keep-cluster', async () => {
  const here = await ofServer()
  const nowhere = ['--kubeconfig', `${home.directory}/nowhere.config`]
  writeFileSync(nowhere[1] ?? '', kubeconfigOf('http://127.0.0.1:1'))
  await home.fails(7, ['connect', 'cluster', 'far', '--apply', ...nowhere])
  assert.deepEqual(await ofServer(), here)
  await home.ok(connect('far'))
  const why = await home.fails(1, disconnect('far', ...nowhere))
  assert.match(why, /nothing was changed\. If the cluster is gone or unreachable, use --keep-cluster/)
  assert.equal((await agentKeysOf('far')).length, 1)
  await home.ok(disconnect('far', '--keep-cluster'))
  assert.deepEqual(await ofServer(), here)
})

test('invalid flags are reported together', async () => {
  const why = await home.fails(
    2,
    connect('Prod_1', '--label', 'x', '--project', 'shop', '--gateway-ca', kube.kubeconfig),
  )
  for (const text of ['NAME "Prod_1"', '--label: "x"', '--project: "shop"', '--gateway-ca requires --gateway-url'])
    assert.ok(why.includes(text), `${text} is missing in: ${why}`)
  assert.match(await home.fails(2, connect('a', '--namespace', 'default')), /must be a namespace of its own/)
  assert.match(await home.fails(2, connect('a', '--gateway-url', 'http://a')), /must be https/)
})

test('the namespace of somebody else is not taken over', async () => {
  await kube.resources.create(KubeNamespace, '', { metadata: { name: 'theirs' } })
  const why = await home.fails(2, applied('x', '--namespace', 'theirs'))
  assert.match(why, /namespace theirs exists already/)
  assert.equal((await server.request('GET', `${clusters}/x`)).status, 404)
  await home.ok(applied('x'))
  assert.match(await home.fails(2, applied('y')), /contains the agent of cluster x/)
  const { data } = (await kube.resources.get(ConfigMap, { namespace: 'platform-agent', name: 'platform-agent' }))
    .object as unknown as { readonly data: { readonly [name: string]: string } }
  assert.equal(parse(data['gateway.yaml'] ?? '').agent.cluster, 'x')
  await home.ok(disconnect('x', ...kubeFlags))
  await kube.resources.delete(KubeNamespace, { namespace: '', name: 'theirs' })
})

test('disconnect asks first', async () => {
  await home.ok(connect('z'))
  const why = await home.fails(2, ['disconnect', 'cluster', 'z', '--keep-cluster'])
  assert.match(why, /Delete cluster\/z and 1 access key of its agent on https:\S+\? Use --yes/)
  await home.ok(disconnect('z', '--keep-cluster'))
})

test('completion knows the contexts of the kubeconfig, and the names of clusters', async () => {
  await home.ok(connect('zoo'))
  const complete = (...words: readonly string[]) =>
    home.ok(['__complete', '--', ...words], { env: { KUBECONFIG: kube.kubeconfig } })
  assert.equal(await complete('connect', 'cluster', 'zoo', '--context', ''), 'here\n')
  assert.equal(await complete('disconnect', 'cluster', '--context', 'here', 'z'), 'zoo\n')
  assert.equal(await complete('kubeconfig', '--cluster', 'z'), 'zoo\n')
  await home.ok(disconnect('zoo', '--keep-cluster'))
})

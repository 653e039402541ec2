// The same requests to this server and to stock Kubernetes, where KUBE_APISERVER and ETCD name binaries: the same answers, to the letter. Of a
// kind that both have.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { rbac } from '../access/people.ts'
import { type KubeCluster, kubeBinaries, startKube } from '../support/kube-cluster.ts'
import { type Answer, openRequests } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'

type Asked = readonly [method: string, path: string, body?: unknown, type?: string]

const roles = `${rbac}/clusterroles`
const bindings = `${rbac}/clusterrolebindings`
const [merge, operations, strategic, apply] = [
  'merge-patch+json',
  'json-patch+json',
  'strategic-merge-patch+json',
  'apply-patch+yaml',
]
const api = { apiVersion: 'rbac.authorization.k8s.io/v1' }
const rule = (verb: string) => [{ apiGroups: [''], resources: ['pods'], verbs: [verb] }]
const role = (name: string, metadata: object = {}, verb = 'get') => ({
  ...api,
  kind: 'ClusterRole',
  metadata: { name, ...metadata },
  rules: rule(verb),
})
const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'one' }
const binding = (name: string, subjects: object[]) => ({
  ...api,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef,
  subjects,
})
const going = (more: object) => ({ apiVersion: 'v1', kind: 'DeleteOptions', ...more })

/** In this order, on a server where nothing of it is there yet. */
const stories: { readonly [name: string]: readonly Asked[] } = {
  'create and get': [
    ['POST', roles, role('one')],
    ['POST', roles, role('one')],
    ['GET', `${roles}/one`],
    ['GET', `${roles}/none`],
    ['GET', `${rbac}/nonsense/none`],
    ['GET', `${rbac}/namespaces/team/clusterroles`],
    ['POST', roles, { metadata: { name: 'typeless' }, rules: rule('get') }],
    ['POST', roles, role('Large_Name')],
    ['POST', roles, role('a%b')],
    ['POST', roles, role('a/b')],
    ['POST', roles, role('..')],
    ['POST', roles, role('')],
    ['POST', roles, role('', { generateName: 'made-' })],
    ['POST', roles, role('labelled', { labels: { 'bad key!': 'x' } })],
    ['POST', roles, role('labelled', { labels: { ok: '-bad-' } })],
    ['POST', roles, role('noted', { annotations: { 'bad key!': 'x' } })],
    ['POST', roles, role('known', { uid: 'abc' })],
    ['POST', `${roles}?dryRun=All`, role('dry')],
    ['GET', `${roles}/dry`],
    ['POST', `${roles}?fieldValidation=Strict`, { ...role('strict'), nope: 1 }],
    ['POST', `${roles}?fieldValidation=Warn`, { ...role('warned'), nope: 1 }],
    ['POST', `${roles}?fieldValidation=Bogus`, role('bogus')],
    ['POST', bindings, binding('bound', [{ kind: 'User', name: 'u' }])],
    ['POST', `${rbac}/namespaces/team/roles`, { ...api, kind: 'Role', metadata: { name: 'r', namespace: 'other' } }],
    [
      'POST',
      `${rbac}/namespaces/team/roles`,
      { ...api, kind: 'Role', metadata: { name: 'r' }, rules: [{ verbs: [], apiGroups: [''], resources: ['x'] }] },
    ],
  ],
  'update and patch': [
    ['PUT', `${roles}/one`, role('two')],
    ['PUT', `${roles}/one`, role('one', { resourceVersion: '1' })],
    ['PATCH', `${roles}/one`, { metadata: { labels: { a: 'b' } } }, merge],
    ['PATCH', `${roles}/one`, { metadata: { labels: { a: null } } }, merge],
    ['PATCH', `${roles}/none`, { metadata: { labels: { a: 'b' } } }, merge],
    ['PATCH', `${roles}/one`, { metadata: { name: 'other' } }, merge],
    ['PATCH', `${roles}/one`, { metadata: { resourceVersion: '1' } }, merge],
    ['PATCH', `${roles}/one`, [{ op: 'add', path: '/metadata/labels', value: { q: '1' } }], operations],
    ['PATCH', `${roles}/one`, { rules: rule('watch') }, strategic],
    ['PATCH', `${roles}/one`, { metadata: { labels: { $patch: 'delete' } } }, strategic],
    ['PATCH', `${roles}/one`, { metadata: { labels: { $patch: 'bogus' } } }, strategic],
  ],
  apply: [
    ['PATCH', `${roles}/one`, role('one'), apply],
    ['PATCH', `${roles}/one?fieldManager=m1`, role('one'), apply],
    ['PATCH', `${roles}/one?fieldManager=m1&force=true`, role('one'), apply],
    ['PATCH', `${roles}/fresh?fieldManager=m1`, role('fresh'), apply],
    ['PATCH', `${roles}/fresh?fieldManager=m2`, role('fresh', {}, 'list'), apply],
    ['PATCH', `${roles}/fresh?fieldManager=m1&force=true`, {}, merge],
    ['PATCH', `${roles}/fresh?fieldManager=${'m'.repeat(130)}`, {}, merge],
  ],
  'list and watch': [
    ['GET', `${roles}?labelSelector=a%20b%20c`],
    ['GET', `${roles}?labelSelector=none%3Dhere`],
    ['GET', `${roles}?limit=-1&labelSelector=none%3Dhere`],
    ['GET', `${roles}?limit=abc`],
    ['GET', `${roles}?resourceVersionMatch=Exact`],
    ['GET', `${roles}?resourceVersion=0&resourceVersionMatch=Exact`],
    ['GET', `${roles}?resourceVersion=5&resourceVersionMatch=Bogus`],
    ['GET', `${roles}?sendInitialEvents=true`],
    ['GET', `${roles}?watch=true&resourceVersionMatch=NotOlderThan`],
    ['GET', `${roles}?watch=true&timeoutSeconds=1&labelSelector=none%3Dhere`],
    ['GET', `${roles}?watch=true&timeoutSeconds=abc`],
  ],
  delete: [
    ['DELETE', `${roles}/none`],
    ['DELETE', `${roles}/one`, going({ preconditions: { uid: 'wrong' } })],
    ['DELETE', `${roles}/one`, going({ preconditions: { resourceVersion: '1' } })],
    ['DELETE', `${roles}/one`, going({ propagationPolicy: 'Orphan', orphanDependents: true })],
    ['DELETE', `${roles}/one?dryRun=All`],
    ['DELETE', `${roles}/one`],
    ['DELETE', `${roles}/one`],
    ['POST', roles, role('held', { finalizers: ['example.com/f'] })],
    ['DELETE', `${roles}/held`],
    ['GET', `${roles}/held`],
    ['POST', roles, role('held')],
    ['PATCH', `${roles}/held`, { metadata: { finalizers: null } }, merge],
    ['GET', `${roles}/held`],
    ['DELETE', `${roles}?labelSelector=none%3Dhere`],
  ],
}

/**
 * Fields that differ between servers: ids, times, revisions. And the generation, which Kubernetes does not count for
 * these kinds.
 */
function plain({ status, text }: Answer): unknown {
  const told = text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
    .replaceAll(/"resourceVersion":"\d+"/g, '"resourceVersion":"N"')
    .replaceAll(/in record \(\d+\)/g, 'in record (N)')
    .replaceAll(/"generation":\d+,?|made-[a-z0-9]{5}/g, '')
  return { status, told: told ? JSON.parse(told) : '' }
}

const binaries = kubeBinaries
if (binaries)
  describe('the same responses as stock Kubernetes', () => {
    let ours: Server
    let kube: KubeCluster
    let theirs: ReturnType<typeof openRequests>
    before(async () => {
      ours = await startServer({ storage: 'memory' })
      kube = await startKube(binaries, { authorization: 'RBAC' })
      const { server, ca, token } = kube.access
      theirs = openRequests({ base: server, ca: (ca as { text: string }).text, key: token as string })
    })
    after(async () => {
      await kube?.close()
      await ours?.stop()
    })

    for (const [name, requests] of Object.entries(stories))
      test(name, async () => {
        for (const [method, path, body, type] of requests) {
          const options = {
            ...(body === undefined ? {} : { body }),
            ...(type ? { headers: { 'Content-Type': `application/${type}` } } : {}),
          }
          const [own, wanted] = [await ours.request(method, path, options), await theirs.request(method, path, options)]
          assert.deepEqual(plain(own), plain(wanted), `${method} ${path} ${JSON.stringify(body)}`)
        }
      })
  })

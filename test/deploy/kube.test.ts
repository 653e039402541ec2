// Against stock Kubernetes, if KUBE_APISERVER and ETCD name binaries: the API server accepts every manifest of deploy/kubernetes.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { exec } from '../support/exec.ts'
import { type KubeCluster, kubeBinaries, startKube } from '../support/kube-cluster.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { build, type Manifest, titleOf, variants } from './built.ts'

const binaries = kubeBinaries
const [kubectl] = (await findKubectls()).toReversed()
if (binaries && !kubectl) notRun('kubectl ≥ 1.29')
else if (binaries && kubectl)
  describe('stock Kubernetes', () => {
    let kube: KubeCluster
    before(async () => {
      kube = await startKube(binaries)
    })
    after(() => kube?.close())

    const apply = (objects: readonly Manifest[], ...flags: readonly string[]) =>
      exec(kubectl.file, ['--kubeconfig', kube.kubeconfig, 'apply', '--server-side', ...flags, '-f', '-'], {
        stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
      })

    for (const variant of variants)
      test(`accepts ${titleOf(variant)}`, async () => {
        // The kinds of cert-manager and of the Prometheus Operator do not exist here.
        const objects = (await build(kubectl.file, variant)).filter(
          ({ apiVersion }) => !/^(?:cert-manager\.io|monitoring\.coreos\.com)\//.test(apiVersion),
        )
        const names = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []))
        const bare = [...names].map(name => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
        const own = objects.filter(({ kind }) => kind === 'Namespace')
        // A dry run does not create namespaces. With their labels, Kubernetes also warns about pods that break its standards.
        const made = await apply([
          ...bare.filter(one => !own.some(it => it.metadata.name === one.metadata.name)),
          ...own,
        ])
        assert.equal(made.code, 0, made.stderr)
        const { code, stderr } = await apply(objects, '--dry-run=server', '--validate=strict')
        assert.equal(code, 0, stderr)
        assert.equal(stderr, '')
      })
  })

// The manifests of deploy/kubernetes: every overlay and component builds, is hardened, and refers only to things that exist.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { agentExample } from '../../docs/agent-example.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import {
  build,
  type Container,
  deployDirectory,
  findObject,
  type Manifest,
  type Probe,
  titleOf,
  variants,
  type Workload,
  workloadsIn,
} from './built.ts'
import { fieldProblems } from './field-problems.ts'

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))

/** Kinds of operators that a cluster may lack. Only components have them. */
const customKinds = ['Certificate', 'ServiceMonitor']
/** The Secrets that people create, with their keys. docs/KUBERNETES.md shows how. */
const secrets: { readonly [name: string]: readonly string[] } = {
  'platform-master-key': ['master.key'],
  'platform-etcd': ['endpoints', 'ca.crt', 'tls.crt', 'tls.key'],
  'platform-tls': ['tls.crt', 'tls.key', 'ca.crt'],
  'platform-metrics': ['key', 'ca.crt'],
  'platform-agent-key': ['key'],
  'platform-agent-tls': ['tls.crt', 'tls.key'],
  'my-vcluster-kubeconfig': ['config'],
}
/** The server does not use the API of its cluster. The agent and the syncer do. */
const usesApi = ['platform-agent', 'vcluster-sync']

type Labels = Readonly<Record<string, string>>
const selects = (selector: Labels, labels: Labels = {}) =>
  Object.entries(selector).every(([key, value]) => labels[key] === value)

const portOf = (container: Container, port: string | number) => {
  const found = container.ports?.find(one => one.name === port || one.containerPort === port)
  return typeof port === 'number' ? port : found?.containerPort
}

test('every file of deploy/kubernetes is in use', () => {
  const all = globSync('**/*.yaml', { cwd: deployDirectory })
  const kustomizations = all.filter(file => file.endsWith('kustomization.yaml'))
  const named = kustomizations.flatMap(file => {
    const {
      resources = [],
      patches = [],
      configMapGenerator = [],
      components = [],
    } = parse(readFileSync(join(deployDirectory, file), 'utf8'))
    const paths = [
      ...[...resources, ...components],
      ...patches.flatMap(({ path = [] }) => path),
      ...configMapGenerator.flatMap(({ files = [] }) => files),
    ].map(name => join(dirname(file), name))
    for (const path of paths) assert.ok(existsSync(join(deployDirectory, path)), `${file} names ${path}`)
    return paths
  })
  // For the virtual cluster, not for the host.
  const others = ['overlays/syncer/virtual.yaml']
  const unused = all.filter(file => !kustomizations.includes(file) && !named.includes(file) && !others.includes(file))
  assert.deepEqual(unused, [])
  const directories = globSync('components/*', { cwd: deployDirectory })
  const tried = variants.flatMap(({ components }) => components.map(name => `components/${name}`))
  for (const one of directories) assert.ok(tried.includes(one) || named.includes(one), `${one} is not tested`)
})

test('the example of an agent equals the manifests of platform connect cluster', () => {
  const file = join(deployDirectory, 'overlays/agent/agent.yaml')
  assert.ok(readFileSync(file, 'utf8') === agentExample(), 'run `npm run docs`')
})

const [kubectl] = (await findKubectls()).toReversed()
if (!kubectl) notRun('kubectl ≥ 1.29')
else
  for (const variant of variants)
    describe(titleOf(variant), () => {
      let objects: readonly Manifest[]
      let workloads: readonly Workload[]
      let pods: readonly { readonly labels: Labels; readonly namespace: string | undefined; readonly of: Workload }[]
      before(async () => {
        objects = await build(kubectl.file, variant)
        workloads = workloadsIn(objects)
        pods = workloads.map(of => ({
          labels: of.spec.template.metadata.labels,
          namespace: of.metadata.namespace,
          of,
        }))
      })
      const containers = () =>
        workloads.flatMap(workload =>
          workload.spec.template.spec.containers.map(container => ({ workload, container })),
        )
      const only = (kind: string) => objects.filter(one => one.kind === kind)

      test('has one workload, and no kind of an operator without a component', () => {
        assert.equal(workloads.length, 1)
        const custom = objects.filter(({ kind }) => customKinds.includes(kind))
        if (variant.components.length === 0) assert.deepEqual(custom, [])
        assert.deepEqual(only('Secret'), [], 'secrets do not belong into manifests')
      })

      test('has only fields that Kubernetes knows', () => {
        const problems = objects.filter(({ kind }) => !customKinds.includes(kind)).flatMap(fieldProblems)
        assert.deepEqual(problems, [])
        const [workload] = workloads
        const mistyped = { ...workload, spec: { ...workload?.spec, replica: 2, replicas: 'two' } } as never
        assert.deepEqual(fieldProblems(mistyped), [
          `${workload?.kind}.spec.replicas is not a number`,
          `${workload?.kind}.spec.replica is not a field`,
        ])
      })

      test('runs as an unprivileged user on a read-only file system', () => {
        for (const { workload, container } of containers()) {
          const pod = workload.spec.template.spec
          const { fsGroupChangePolicy: _, ...context } = pod.securityContext
          assert.deepEqual(context, {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 65532,
            fsGroup: 65532,
            seccompProfile: { type: 'RuntimeDefault' },
          })
          assert.deepEqual(container.securityContext, {
            runAsNonRoot: true,
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            seccompProfile: { type: 'RuntimeDefault' },
          })
          assert.equal(pod.automountServiceAccountToken, usesApi.includes(workload.metadata.name))
          assert.equal(pod.enableServiceLinks, false)
          for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers'])
            assert.equal(Object.hasOwn(pod, field), false, field)
        }
      })

      test('has probes on a port that its program opens', () => {
        for (const { container } of containers()) {
          const paths = { startupProbe: '/livez', livenessProbe: '/livez', readinessProbe: '/readyz' } as const
          for (const [probe, path] of Object.entries(paths)) {
            const { httpGet } = container[probe as keyof typeof paths] as Probe
            assert.equal(httpGet.path, path, probe)
            assert.equal(
              portOf(container, httpGet.port),
              variant.overlay === 'agent' ? statusPort() : listenPort(container),
            )
            assert.equal(httpGet.scheme ?? 'HTTP', container.name === 'platform' ? 'HTTPS' : 'HTTP')
          }
        }
      })

      /** The agent listens where its configuration says. */
      const statusPort = () =>
        Number(
          parse(findObject(objects, 'ConfigMap', 'platform-agent').data?.['gateway.yaml'] ?? '').status.split(':')[1],
        )
      const listenPort = ({ args }: Container) => {
        const flag = args.find(arg => arg.startsWith('--listen='))
        if (flag) return Number(flag.split(':').at(-1))
        const config = only('ConfigMap').find(({ data }) => data?.['server.yaml'])
        return Number(parse(config?.data?.['server.yaml'] ?? '').https.split(':')[1])
      }

      test('requests memory and CPU, and limits memory only', () => {
        for (const { container } of containers()) {
          assert.deepEqual(Object.keys(container.resources.requests).toSorted(), ['cpu', 'memory'])
          // A limit of CPU would stop the program in the middle of a request.
          assert.deepEqual(Object.keys(container.resources.limits), ['memory'])
        }
      })

      test('has the image of this version, which a Kustomization can replace', async () => {
        for (const { container } of containers()) assert.equal(container.image, `platform:${version}`)
        const images = [{ name: 'platform', newName: 'registry.example.org/tools/platform', newTag: '9.9.9' }]
        for (const { spec } of workloadsIn(await build(kubectl.file, variant, { images })))
          for (const { image } of spec.template.spec.containers)
            assert.equal(image, 'registry.example.org/tools/platform:9.9.9')
      })

      test('mounts volumes that exist, with known Secrets and its own ConfigMaps', () => {
        const configMaps = only('ConfigMap').map(({ metadata }) => metadata.name)
        const claims = (workload: Workload) => workload.spec.volumeClaimTemplates?.map(one => one.metadata.name) ?? []
        for (const { workload, container } of containers()) {
          const { volumes } = workload.spec.template.spec
          const names = [...volumes.map(({ name }) => name), ...claims(workload)]
          for (const { name } of container.volumeMounts) assert.ok(names.includes(name), name)
          const mounted = container.volumeMounts.map(({ name }) => name)
          for (const { name, configMap, secret, emptyDir } of volumes) {
            assert.ok(mounted.includes(name), `${name} is not mounted`)
            if (configMap) assert.ok(configMaps.includes(configMap.name), configMap.name)
            else if (secret) assert.ok(secrets[secret.secretName], secret.secretName)
            else assert.ok(emptyDir, name)
            const isWritable = container.volumeMounts.some(one => one.name === name && !one.readOnly)
            assert.equal(isWritable, emptyDir !== undefined, `${name} is read-only`)
          }
          for (const { valueFrom } of container.env ?? [])
            if (valueFrom?.secretKeyRef)
              assert.ok(secrets[valueFrom.secretKeyRef.name]?.includes(valueFrom.secretKeyRef.key))
        }
      })

      test('has a disruption budget, services and policies that select its pods', () => {
        const [budget] = only('PodDisruptionBudget')
        const [pod] = pods
        assert.ok(budget && pod)
        assert.equal(budget.spec.maxUnavailable, 1)
        assert.ok(selects(pod.of.spec.selector.matchLabels, pod.labels))
        const inNamespace = (one: Manifest) => assert.equal(one.metadata.namespace, pod.namespace, one.metadata.name)
        for (const one of [budget, ...only('Service'), ...only('NetworkPolicy'), ...only('ServiceMonitor')])
          inNamespace(one)
        assert.ok(selects(budget.spec.selector.matchLabels, pod.labels))
        for (const { spec, metadata } of only('Service')) {
          assert.ok(selects(spec.selector, pod.labels), metadata.name)
          for (const { targetPort } of spec.ports)
            assert.ok(portOf(pod.of.spec.template.spec.containers[0] as Container, targetPort), metadata.name)
        }
        for (const { spec, metadata } of only('NetworkPolicy'))
          assert.ok(selects(spec.podSelector.matchLabels ?? {}, pod.labels), metadata.name)
      })

      test('denies traffic by default, and allows DNS and the ports in use', () => {
        const policies = only('NetworkPolicy').map(({ spec }) => spec)
        const [pod] = pods
        const denied = policies.filter(({ policyTypes }) =>
          ['Ingress', 'Egress'].every(one => policyTypes.includes(one)),
        )
        assert.ok(denied.length)
        const egress = policies.flatMap(spec => spec.egress ?? [])
        const open = egress.flatMap(({ to, ports }) => (to ? [] : ports.map((one: { port: number }) => one.port)))
        assert.deepEqual(open, [443, 6443, 8443, ...(variant.overlay === 'etcd' ? [2379] : [])])
        assert.ok(egress.some(({ to, ports }) => to && ports.every((one: { port: number }) => one.port === 53)))
        const ingress = policies.flatMap(spec => spec.ingress ?? []).flatMap(({ ports }) => ports)
        const container = pod?.of.spec.template.spec.containers[0] as Container
        for (const { port } of ingress) assert.ok(portOf(container, port), port)
        assert.equal(
          ingress.some(({ port }) => port === 'https'),
          variant.overlay !== 'syncer',
        )
      })

      test('is monitored through a service, with the key of a Secret', () => {
        for (const { spec } of only('ServiceMonitor')) {
          const found = only('Service').filter(one => selects(spec.selector.matchLabels, one.metadata.labels))
          assert.equal(found.length, 1)
          for (const { port, path, authorization, tlsConfig } of spec.endpoints) {
            assert.equal(path, '/metrics')
            assert.ok(found[0]?.spec.ports.some((one: { name: string }) => one.name === port))
            for (const key of [authorization?.credentials, tlsConfig?.ca.secret])
              if (key) assert.ok(secrets[key.name]?.includes(key.key), key.key)
          }
        }
        assert.equal(only('ServiceMonitor').length, variant.components.some(name => name.endsWith('monitor')) ? 1 : 0)
      })

      if (variant.overlay === 'etcd')
        test('spreads replicas over nodes and zones', () => {
          const [{ spec } = assert.fail()] = workloads
          assert.equal(spec.replicas, 3)
          const rules = JSON.stringify([spec.template.spec.affinity, spec.template.spec.topologySpreadConstraints])
          for (const key of ['kubernetes.io/hostname', 'topology.kubernetes.io/zone']) assert.ok(rules.includes(key))
        })

      if (variant.components.includes('cert-manager'))
        test('gets a certificate for every name that clients and replicas use', () => {
          const [{ spec } = assert.fail()] = only('Certificate')
          const config = only('ConfigMap').find(({ data }) => data?.['server.yaml'])
          const { tlsSan } = parse(config?.data?.['server.yaml'] ?? '')
          for (const name of tlsSan) assert.ok(spec.dnsNames.includes(name), name)
          const [headless] = only('Service').filter(one => one.spec.clusterIP === 'None')
          assert.ok(spec.dnsNames.includes(`*.${headless?.metadata.name}.${headless?.metadata.namespace}.svc`))
          assert.ok(secrets[spec.secretName])
        })
    })

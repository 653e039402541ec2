// Runs the container of a built workload on this machine: its arguments, its variables and the files of its volumes, below a directory.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec, type Output } from '../support/exec.ts'
import { freePort } from '../support/ports.ts'
import { openRequests } from '../support/request.ts'
import { findObject, type Manifest, type Variable, workloadsIn } from './built.ts'

/** The content of Secrets, by name and key. */
export type Secrets = { readonly [name: string]: { readonly [key: string]: string } }

export type Pod = {
  readonly url: string
  /** The file of a path in the container. */
  at(path: string): string
  /** Runs a command of the program in the container, like kubectl exec. */
  run(...args: readonly string[]): Promise<Output>
  start(): Promise<void>
  /** SIGTERM. Returns the exit code. */
  stop(): Promise<number | null>
  kill(): Promise<void>
  /** As a client that knows the CA and a key. */
  requests(key: string): ReturnType<typeof openRequests>
  close(): Promise<void>
}

const program = join(import.meta.dirname, '../../bin/platform.js')
const directories = /(?<![\w./-])\/(?:data|etc\/platform)(?=\/|$)/gm

export async function openPod(objects: readonly Manifest[], secrets: Secrets, name = 'platform-0'): Promise<Pod> {
  const root = mkdtempSync(join(tmpdir(), 'platform-pod-'))
  const inside = (text: string) => text.replace(directories, path => join(root, path))
  const [workload] = workloadsIn(objects)
  const [container] = workload?.spec.template.spec.containers ?? []
  assert.ok(workload && container)
  for (const { name: volume, mountPath } of container.volumeMounts) {
    mkdirSync(join(root, mountPath), { recursive: true })
    const { configMap, secret } = workload.spec.template.spec.volumes.find(one => one.name === volume) ?? {}
    const files = configMap
      ? findObject(objects, 'ConfigMap', configMap.name).data
      : secret && (secrets[secret.secretName] ?? assert.fail(secret.secretName))
    for (const [file, text] of Object.entries(files ?? {})) writeFileSync(join(root, mountPath, file), inside(text))
  }
  const https = `127.0.0.1:${await freePort()}`
  const given: { [name: string]: string } = {}
  for (const variable of container.env ?? []) given[variable.name] = inside(readVariable(variable, given))
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, ...given, PLATFORM_HTTPS: https }

  function readVariable({ value, valueFrom }: Variable, before: typeof given): string {
    if (valueFrom?.secretKeyRef) {
      const { name: secret, key } = valueFrom.secretKeyRef
      return secrets[secret]?.[key] ?? assert.fail(`${secret} has no ${key}`)
    }
    if (valueFrom?.fieldRef) {
      const fields: typeof given = { 'metadata.name': name, 'metadata.namespace': workload?.metadata.namespace ?? '' }
      return fields[valueFrom.fieldRef.fieldPath] ?? assert.fail(valueFrom.fieldRef.fieldPath)
    }
    return (value ?? '').replace(/\$\((\w+)\)/g, (_, one) => before[one] ?? assert.fail(`${one} is not set yet`))
  }

  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals) => {
    const one = child
    child = undefined
    if (!one || one.exitCode !== null || one.signalCode !== null) return one?.exitCode ?? null
    const exited = once(one, 'exit')
    one.kill(signal)
    return (await exited)[0] as number | null
  }
  const leave = () => {
    child?.kill('SIGKILL')
    rmSync(root, { recursive: true, force: true })
  }
  process.once('exit', leave)
  const pod: Pod = {
    url: `https://${https}`,
    at: path => join(root, path),
    run: (...args) => exec(process.execPath, [program, ...args], { env, cwd: root }),
    async start() {
      const flags = ['--max-semi-space-size=32']
      const one = spawn(process.execPath, [...flags, program, ...container.args], {
        ...{ env, cwd: root },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      child = one
      let printed = ''
      await new Promise<void>((resolve, reject) => {
        const look = (chunk: Buffer) => {
          printed += chunk
          if (/^platform is ready: /m.test(printed)) resolve()
        }
        one.stdout.on('data', look)
        one.stderr.on('data', look)
        one.on('exit', code => reject(new Error(`the server ended with ${code}; it printed:\n${printed}`)))
      })
    },
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
    requests: key =>
      openRequests({ base: `https://${https}`, ca: readFileSync(pod.at('/data/platform/ca.crt'), 'utf8'), key }),
    async close() {
      await end('SIGKILL')
      process.off('exit', leave)
      leave()
    },
  }
  return pod
}

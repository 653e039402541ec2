// `platform vcluster test DIR`: runs test fixtures for patches.

import { canonical, writeYaml } from '../../api/codec.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readConfig } from '../../vcluster/config/read.ts'
import { missingIdentity, type PreviewOptions, previewToHost, previewToVirtual } from '../../vcluster/patch/preview.ts'
import { openSandbox } from '../../vcluster/patch/sandbox.ts'
import { stripSyncMetadata } from '../../vcluster/patch/strip-sync-metadata.ts'
import { readObject } from '../read-object.ts'
import { diffOf } from './diff.ts'
import { vclusterFlags } from './patch.ts'

const { file: _, ...flags } = vclusterFlags

export const vclusterTest = defineCommand({
  words: ['vcluster', 'test'],
  what: 'Run the patch fixtures of a directory: exit code 1 if one differs, 2 if one cannot run.',
  examples: [
    { what: 'Run all cases under patches/', command: 'platform vcluster test patches --name vc --namespace team' },
  ],
  positionals: [{ name: 'DIR', what: 'directory with vcluster.yaml and one directory per case' }],
  flags: {
    ...flags,
    file: { type: 'text', short: 'f', value: 'FILE', what: 'The vcluster.yaml, if it is not in DIR.' },
  },
  run: async ({ flags, words: [directory = ''] }, io) => {
    const root = directory.replace(/\/+$/, '')
    const config = await readConfig({ ...flags, file: flags.file ?? `${root}/vcluster.yaml` }, io)
    const names = (await list(root, io)).filter(name => name.endsWith('/')).map(name => name.slice(0, -1))
    if (!names.length)
      throw new UsageError([`${root}: no cases found: a case is a directory with input.yaml and expected.yaml`])
    const sandbox = openSandbox({ workers: 1 })
    const own = flags['object-namespace']
    const options = { config, name: flags.name, namespace: flags.namespace, sandbox, now: io.now, own }
    const count = { ok: 0, differs: 0, broken: 0 }
    try {
      for (const name of names) {
        const {
          outcome,
          difference = '',
          problems = [],
        } = await runCase(`${root}/${name}`, options, io).then(resultOf, broken)
        count[outcome]++
        io.out(`${outcome.padEnd(7)} ${name}\n${difference}`)
        for (const problem of problems) io.err(`platform: ${problem}\n`)
      }
    } finally {
      await sandbox.close()
    }
    const unrun = count.broken ? `, ${count.broken} cannot run` : ''
    const cases = `${names.length} ${names.length === 1 ? 'case' : 'cases'}`
    io.out(`${cases}, ${count.differs} ${count.differs === 1 ? 'differs' : 'differ'}${unrun}\n`)
    return count.broken ? 2 : count.differs ? 1 : 0
  },
})

type CaseResult = {
  readonly outcome: 'ok' | 'differs' | 'broken'
  readonly difference?: string
  readonly problems?: readonly string[]
}
const resultOf = (difference: string): CaseResult => ({ outcome: difference === '' ? 'ok' : 'differs', difference })
/** A broken case does not stop the others. */
const broken = (error: unknown): CaseResult => {
  if (!(error instanceof UsageError)) throw error
  return { outcome: 'broken', problems: error.problems }
}

async function list(path: string, io: Io): Promise<readonly string[]> {
  return io.listDirectory(path).catch((error: Error) => {
    throw new UsageError([error.message])
  })
}

type CaseOptions = PreviewOptions & { readonly own: string | undefined }

/** Returns the difference. A case with only `host.yaml` syncs from the host to the virtual cluster. */
async function runCase(path: string, { own, ...options }: CaseOptions, io: Io): Promise<string> {
  const files = await list(path, io)
  const read = (name: string, isVirtual: boolean) =>
    files.includes(name) ? readObject(`${path}/${name}`, io, isVirtual ? { namespace: own } : undefined) : null
  const [input, host] = [await read('input.yaml', true), await read('host.yaml', false)]
  if (!input && !host) throw new UsageError([`${path}: neither input.yaml nor host.yaml exists`])
  const isReverse = !input || files.includes('reverse')
  const nameless = isReverse && host && missingIdentity({ virtualObject: input, hostObject: host }, options.name)
  if (nameless) throw new UsageError([`${path}/host.yaml: ${nameless}`])
  const preview =
    isReverse && host
      ? await previewToVirtual({ virtualObject: input, hostObject: host }, options)
      : await previewToHost({ virtualObject: input as JsonObject, hostObject: host }, options)
  if (files.includes('expected.error')) {
    const wanted = new TextDecoder().decode(await io.readFile(`${path}/expected.error`)).trim()
    return preview.problem?.includes(wanted) ? '' : diffOf(`${wanted}\n`, `${preview.problem ?? 'no error'}\n`)
  }
  const expected = await read('expected.yaml', isReverse)
  if (!expected) throw new UsageError([`${path}: neither expected.yaml nor expected.error exists`])
  if (preview.problem !== undefined) return `${preview.problem}\n`
  return diffOf(sorted(stripSyncMetadata(expected)), sorted(stripSyncMetadata(preview.object)))
}

function sorted(object: JsonObject): string {
  const order = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(order)
    if (!isObject(value)) return value
    const map = emptyMap()
    for (const key of Object.keys(value).toSorted()) map[key] = order(value[key] as Json)
    return map
  }
  return canonical(object) === '{}' ? '' : writeYaml(order(object))
}

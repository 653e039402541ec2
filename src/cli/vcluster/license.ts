// `platform license inspect`, `keygen` and `issue`: checks licenses, and issues them with the operator's own key.

import { writeYaml } from '../../api/codec.ts'
import { type Json, timestamp } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import { issueLicense } from '../../vcluster/config/issue-license.ts'
import { anyFeatureProblem, knownFeatures, licenseWarning } from '../../vcluster/config/license.ts'
import { makeKeyPair, readPrivateKey } from '../../vcluster/config/license-keys.ts'
import { readLicenseFile, trustFlag } from '../../vcluster/config/read.ts'

export const licenseInspect = defineCommand({
  words: ['license', 'inspect'],
  what: 'Verify a license file and show its features: exit code 1 if it is not valid now.',
  examples: [
    { what: 'Show a license', command: 'platform license inspect examples/development.license' },
    {
      what: 'Show a license that you issued',
      command: 'platform license inspect team.license --license-trust license.key.pub',
    },
  ],
  flags: trustFlag,
  positionals: [{ name: 'FILE', what: 'the license file' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    const license = await readLicenseFile(file, flags['license-trust'], io)
    const { features, development, ...rest } = license
    const problem = anyFeatureProblem(license, io.now())
    const reason = problem ? { reason: problem.code } : {}
    io.out(writeYaml({ ...rest, features, development, valid: !problem, ...reason } as unknown as Json))
    const warning = licenseWarning(license, io.now())
    if (problem) io.err(`platform: ${file}: ${problem.code}: ${problem.message}\n`)
    else if (warning !== undefined) io.err(`platform: ${file}: warning: ${warning}\n`)
    return problem ? 1 : 0
  },
})

export const licenseKeygen = defineCommand({
  words: ['license', 'keygen'],
  what: 'Create a key pair that signs licenses. Never overwrites a file.',
  examples: [
    {
      what: 'Write license.key (private) and license.key.pub (public)',
      command: 'platform license keygen --key license.key',
    },
  ],
  flags: {
    key: {
      type: 'text',
      value: 'FILE',
      what: 'File for the private key, with mode 0600. The public key goes to FILE.pub.',
      required: true,
    },
  },
  run: async ({ flags: { key: file } }, io) => {
    const shared = `${file}.pub`
    if ((await io.files.read(shared)) !== undefined) throw exists(shared)
    const { privateKey, publicKey, name } = makeKeyPair()
    await create(file, privateKey, io)
    await create(shared, publicKey, io, 0o644)
    io.err(
      `platform: created the key ${name}: keep ${file} secret, and pass ${shared} to the syncer with --license-trust\n`,
    )
    return 0
  },
})

export const licenseIssue = defineCommand({
  words: ['license', 'issue'],
  what: 'Sign a license with your own key.',
  examples: [
    {
      what: 'A license for one year',
      command:
        'platform license issue --holder "Team A" --feature vcluster.patches --expires 365d --key license.key --out team.license',
    },
  ],
  flags: {
    holder: { type: 'text', value: 'NAME', what: 'Name of the licensee.', required: true },
    feature: {
      type: 'list',
      value: 'FEATURE',
      what: `A feature to allow: ${knownFeatures.join(', ')}.`,
      required: true,
    },
    expires: {
      type: 'text',
      value: 'TIME',
      what: 'End of the license: a date, a time, or a duration from now such as 365d.',
      required: true,
    },
    'not-before': { type: 'text', value: 'TIME', what: 'Start of the license, as a date or a time. Default: now.' },
    id: { type: 'text', value: 'ID', what: 'Identifier of the license. Default: a random one.' },
    key: { type: 'text', value: 'FILE', what: 'Private key from platform license keygen.', required: true },
    out: { type: 'text', value: 'FILE', what: 'Write a new file. Default: print the license.' },
  },
  run: async ({ flags }, io) => {
    const { expires, 'not-before': notBefore, feature: features } = flags
    const unknown = features.filter(one => !knownFeatures.includes(one))
    const end = timeOf('--expires', expires, io)
    const start = notBefore === undefined ? undefined : timeOf('--not-before', notBefore, io)
    const problems = [
      ...unknown.map(
        one => `--feature: LicenseUnknownFeature: ${quoted(one)} is not a feature (known: ${knownFeatures.join(', ')})`,
      ),
      ...(end <= io.now() ? [`--expires: ${quoted(expires)} is in the past`] : []),
      ...(start !== undefined && start >= end ? ['--not-before must be before --expires'] : []),
    ]
    if (problems.length) throw new UsageError(problems)
    const terms = {
      id: flags.id ?? Buffer.from(io.random(8)).toString('hex'),
      holder: flags.holder,
      features: [...new Set(features)],
      ...(start === undefined ? {} : { notBefore: timestamp(start) }),
      expires: timestamp(end),
    }
    const text = issueLicense(terms, await readPrivateKey(flags.key, io))
    if (flags.out === undefined) io.out(text)
    else await create(flags.out, text, io, 0o644)
    return 0
  },
})

const exists = (file: string) => new UsageError([`${file} already exists: choose another name, or move the file away`])

async function create(file: string, text: string, io: Io, mode?: number): Promise<void> {
  if (!(await io.files.make(file, text, mode))) throw exists(file)
}

const timeFormat = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/
/** The latest time that JavaScript can represent has six-digit years, which licenses do not need. */
const latest = Date.parse('9999-12-31T23:59:59Z')

/** A date is its first moment in UTC. */
function timeOf(flag: string, text: string, io: Io): number {
  const time = /^\d+[smhdw]/.test(text)
    ? io.now() + readDuration(flag, text) * 1000
    : timeFormat.test(text)
      ? Date.parse(text)
      : Number.NaN
  if (Number.isNaN(time) || time > latest)
    throw new UsageError([
      `${flag}: ${quoted(text)} must be a date such as 2027-06-30, a time such as 2027-06-30T12:00:00Z, or a duration such as 365d`,
    ])
  return time
}

// `platform run`: a program with secrets in its environment, and in no file, argument or shell.

import { defineCommand, UsageError } from './command.ts'
import { readValues, variablesOf } from './environment.ts'
import { secretFlags } from './secret.ts'
import { openSession } from './session.ts'

export const run = defineCommand({
  words: ['run'],
  what: 'Run a program with secrets in its environment; its exit code and signals are passed through.',
  examples: [
    { what: 'Every key of a secret under its own name', command: 'platform run --secret app -- npm start' },
    { what: 'One key under another name', command: 'platform run --secret db.password=PGPASSWORD -- psql' },
    { what: 'Secrets of a project', command: 'platform run --project shop --secret app -- ./deploy' },
  ],
  flags: {
    ...secretFlags,
    secret: {
      type: 'list',
      short: 's',
      value: 'NAME[.KEY[=ENV]]',
      what: 'A secret, one of its keys, or that key under another name.',
      required: true,
    },
  },
  positionals: [{ name: '-- COMMAND', what: 'the program and its arguments, behind --', many: true }],
  run: async ({ flags, words }, io) => {
    if (!words.length) throw new UsageError(['there is no program to run: platform run --secret NAME -- COMMAND'])
    const session = await openSession(io, flags)
    const { values } = await readValues(session, flags.secret, flags).finally(session.close)
    // Our own key is not the child's: it asked for these secrets, not for all that we may read.
    const { PLATFORM_ACCESS_KEY: _, PLATFORM_PASSPHRASE: __, ...env } = io.env
    return io.start(words, { env: { ...env, ...variablesOf(values) } }).ended
  },
})

// The one executable: a table of commands. Reads argv and env and hands them on.

import { adminReset } from './admin-reset.ts'
import { auditHash } from './audit-hash.ts'
import { configCheck } from './config.ts'
import { serve } from './serve.ts'
import { flagOf, SettingsError, table, variableOf } from './settings.ts'
import { version } from './version.ts'

type Command = {
  readonly words: readonly string[]
  readonly what: string
  readonly run: (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>
}

const commands: readonly Command[] = [
  { words: ['serve'], what: 'Run the management API.', run: serve },
  { words: ['config', 'check'], what: 'Check the settings and print them.', run: configCheck },
  { words: ['admin', 'reset'], what: 'Make a new administrator key; the server must be stopped.', run: adminReset },
  {
    words: ['audit', 'hash'],
    what: 'Read a value from stdin and print what the audit log shows for it.',
    run: auditHash,
  },
  { words: ['version'], what: 'Print the version.', run: async () => console.log(version) },
]

function help(): string {
  const lines = commands.map(({ words, what }) => `  platform ${words.join(' ').padEnd(14)} ${what}`)
  const flags = Object.entries(table).map(
    ([key, row]) => `  --${flagOf(key).padEnd(16)} ${row.what} [${String(row.default) || '-'}] (${variableOf(key)})`,
  )
  return [
    'Usage:',
    ...lines,
    '',
    'Settings (flag, environment variable, or key of the file given by --config):',
    ...flags,
  ].join('\n')
}

async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args[0] === 'help') {
    console.log(help())
    return args.length === 0 ? 2 : 0
  }
  const command = commands.find(({ words }) => words.every((word, index) => args[index] === word))
  if (!command) {
    console.error(
      `platform: no command "${args.slice(0, 2).join(' ')}". Commands: ${commands.map(({ words }) => words.join(' ')).join(', ')}`,
    )
    return 2
  }
  try {
    await command.run(args.slice(command.words.length), process.env)
    return 0
  } catch (error) {
    if (error instanceof SettingsError) {
      for (const problem of error.problems) console.error(`platform: ${problem}`)
      return 2
    }
    console.error(`platform: ${(error as Error).message}`)
    return 1
  }
}

// Ends the process even where a command that failed left a store or a watch open.
process.exit(await main(process.argv.slice(2)))

// `platform vcluster validate`, `schema` and `defaults`: checks files offline.

import { writeYaml } from '../../api/codec.ts'
import type { Json } from '../../api/object.ts'
import { defineCommand } from '../../host/command.ts'
import { defaultConfig } from '../../vcluster/config/config.ts'
import { configFlags, readConfig, syncReferencesFlag } from '../../vcluster/config/read.ts'
import { jsonSchema } from '../../vcluster/config/schema.ts'

export const vclusterValidate = defineCommand({
  words: ['vcluster', 'validate'],
  what: 'Validate a vcluster.yaml and report all problems.',
  examples: [
    { what: 'Validate a file: exit code 0 valid, 2 invalid', command: 'platform vcluster validate -f vcluster.yaml' },
    {
      what: 'With patches, which require a license',
      command: 'platform vcluster validate -f vcluster.yaml --license examples/development.license',
    },
    { what: 'See the file merged with the defaults', command: 'platform vcluster validate -f vcluster.yaml -o yaml' },
  ],
  flags: {
    ...configFlags,
    ...syncReferencesFlag,
    output: {
      type: 'text',
      short: 'o',
      value: 'FORMAT',
      what: 'Print the configuration with its defaults.',
      choices: ['yaml', 'json'],
    },
  },
  run: async ({ flags }, io) => {
    const config = (await readConfig(flags, io)) as unknown as Json
    if (flags.output === 'json') io.out(`${JSON.stringify(config, undefined, 2)}\n`)
    else if (flags.output === 'yaml') io.out(writeYaml(config))
    else io.out(`${flags.file} is valid\n`)
    return 0
  },
})

export const vclusterSchema = defineCommand({
  words: ['vcluster', 'schema'],
  what: 'Print the JSON Schema of a vcluster.yaml, for editors.',
  examples: [{ what: 'Save it next to the file', command: 'platform vcluster schema > vcluster.schema.json' }],
  flags: {},
  run: async (_, io) => {
    io.out(jsonSchema())
    return 0
  },
})

export const vclusterDefaults = defineCommand({
  words: ['vcluster', 'defaults'],
  what: 'Print the default configuration.',
  examples: [{ what: 'Start from the defaults', command: 'platform vcluster defaults > vcluster.yaml' }],
  flags: {},
  run: async (_, io) => {
    io.out(writeYaml(defaultConfig() as unknown as Json))
    return 0
  },
})

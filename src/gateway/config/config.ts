// Reads a gateway.yaml, and reports all problems together with line and column.

import { type Finding, isDoubtful, problemsIn, validPart, withoutGaps } from '../../api/config-shape.ts'
import type { Schema } from '../../api/schema.ts'
import { type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { checkRules, type PartialConfig } from './rules.ts'
import { embeddedSchema, type GatewayConfig, standaloneSchema } from './schema.ts'

/** With problems, `config` contains the parts of the right type. */
export type LoadedConfig = { readonly config: GatewayConfig; readonly problems: readonly Problem[] }

/** `alone`: for a standalone gateway. Otherwise for the one in `platform serve`, which has its own listener, issuer and log. */
export function loadGatewayConfig(bytes: Uint8Array, alone: boolean): LoadedConfig {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { config: {}, problems: error.problems }
  }
  const findings: Finding[] = []
  const valid = validPart(text.value, {
    schema: (alone ? standaloneSchema : embeddedSchema) as Schema,
    at: [],
    findings,
  })
  if (!alone)
    for (const [index, one] of findings.entries())
      if (
        one.key &&
        one.at.length === 1 &&
        Object.hasOwn((standaloneSchema as Schema).properties ?? {}, String(one.at[0]))
      )
        findings[index] = {
          ...one,
          message: `${one.at[0]} is only for a standalone gateway; platform serve uses its own settings`,
        }
  // The rules rely on the types; a rule that depends on a part of the wrong type is skipped.
  findings.push(...checkRules((valid ?? {}) as PartialConfig).filter(one => !isDoubtful(findings, one)))
  const config = withoutGaps(valid ?? {}) as GatewayConfig
  return { config, problems: problemsIn(text, findings) }
}

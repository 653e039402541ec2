// Decides which writes must be on record before they happen, if the setting audit.refuseWrites says so.

import type { Verb } from '../api/kind.ts'
import type { Audit } from '../serving/audit.ts'
import type { AuditContext, Exchange } from '../serving/exchange.ts'

type Strictness = { readonly refuseUnaudited: boolean; readonly access: { readonly audit: Audit } }

/** The record that a write needs; undefined: none. */
export function recordOf(
  { refuseUnaudited, access }: Strictness,
  { auditContext }: Exchange,
  { verb }: { readonly verb: Verb },
): AuditContext | undefined {
  if (!refuseUnaudited || verb === 'get' || verb === 'list' || verb === 'watch' || !auditContext) return undefined
  return access.audit.isDue(auditContext) ? auditContext : undefined
}

/** While the log is known to fail, nothing more is queued for it. */
export const mayBegin = async (audit: Audit, context: AuditContext) =>
  audit.failure === undefined && (await audit.announce(context))

// Confirmation of the sign-in of another device: the session that confirms, a token for the form, and the key that results.

import type { JsonObject } from '../../api/object.ts'
import type { Exchange } from '../../serving/exchange.ts'
import {
  machineName,
  note,
  type Route,
  type SignedInCaller,
  type SignInContext,
  SignInError,
  sessionOf,
} from './context.ts'
import { type Html, html } from './html.ts'
import { redirect } from './page.ts'

/** Seconds that a person has to confirm. */
const confirmFor = 120

/** Signs in at a provider first if there is no session, or only that of an access key, and comes back. */
export async function withSession(
  context: SignInContext,
  exchange: Exchange,
  show: (session: SignedInCaller) => ReturnType<Route>,
): Promise<Awaited<ReturnType<Route>>> {
  const session = await sessionOf(context, exchange)
  if (session && context.sessions.isDerivable(session.caller.keyUid)) return show(session)
  const { query, path } = exchange
  const provider = query.get('provider')
  const back = `return=${encodeURIComponent(`${path}?${query}`)}`
  const hint = query.get('hint')
  if (!provider) return redirect(`login?${back}`)
  return redirect(`login/${encodeURIComponent(provider)}?${back}${hint ? `&hint=${encodeURIComponent(hint)}` : ''}`)
}

type Fields = { readonly [name: string]: string | number }

/** Hidden fields, with a token that binds the confirmation to the session and to what the page showed. */
export function confirmationFields(context: SignInContext, { caller }: SignedInCaller, shown: Fields): readonly Html[] {
  const until = context.now() + confirmFor * 1000
  const token = context.seal('confirm', JSON.stringify({ key: caller.keyUid, shown, until }))
  return Object.entries({ ...shown, token }).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
}

/** Throws 403 unless the form has the token of a page that showed the same to the same session. */
export function checkConfirmation(
  context: SignInContext,
  { caller }: SignedInCaller,
  form: URLSearchParams,
  shown: Fields,
): void {
  const text = context.unseal('confirm', form.get('token') ?? '')
  const token = text === undefined ? undefined : (JSON.parse(text) as { key: string; shown: Fields; until: number })
  if (
    token === undefined ||
    token.key !== caller.keyUid ||
    token.until <= context.now() ||
    JSON.stringify(token.shown) !== JSON.stringify(shown)
  )
    throw new SignInError(403, {
      reason: 'StaleConfirmation',
      title: 'The confirmation has expired',
      advice: 'It is valid for two minutes, and only in the session that it was shown in. Start again.',
    })
}

/** The key of another device, made with the session that confirmed it. */
export async function deviceKey(context: SignInContext, exchange: Exchange, data: JsonObject): Promise<JsonObject> {
  const machine = machineName(String(data['machine']))
  const session = await context.sessions.derive(String(data['keyUid']), machine)
  context.report('device', 'Success')
  note(exchange, { user: session.username, machine, result: 'Success' })
  return {
    key: session.secret,
    name: session.name,
    user: session.username,
    expires: new Date(session.expires).toISOString(),
  }
}

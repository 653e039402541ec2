// Requests with keys whose scopes have very many words, which once stalled the server. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { bind, many, must, ours, type User, user, words } from './users.ts'

export const scopeRows: { readonly [what: string]: Row } = {
  'the rules of a user without roles, within a scope of 195 rules with 245 resources each': async system => {
    const holder = async (name: string, rules: number) => {
      const found = await user(system, name, { rules: many(rules, at => ({ resources: [things(at, 245)] })) })
      return () => listRules(found)
    }
    return (await judge(await holder('half', 97), await holder('whole', 195))).problem
  },
  'the rules of a user with 79 rules of 248 resources, within a scope of 40 rules with 240': async system => {
    const holder = async (name: string, count: number) => {
      const rules = many(count, at => ({ verbs: ['get'], resources: [things(at, 240)] }))
      const found = await user(system, name, { rules })
      await bind(
        found,
        many(79, at => {
          const { group, resources } = things(at + 1000, 248)
          return { verbs: ['get'], apiGroups: [group], resources }
        }),
      )
      return () => listRules(found)
    }
    return (await judge(await holder('half', 20), await holder('whole', 40))).problem
  },
  'a token for one verb less than a key with 195 rules of 240 resources': async system => {
    const create = async (name: string, count: number) => {
      const scope = (verbs: readonly string[]) => ({
        rules: many(count, at => ({ verbs, resources: [{ resources: many(240, index => `thing-${at}-${index}`) }] })),
      })
      const { ask } = await user(system, name, scope(['get', 'list']))
      return () => must(ask('POST', tokens, { spec: { scope: scope(['get']) } }))
    }
    return (await judge(await create('half', 97), await create('whole', 195))).problem
  },
  'a key with 195 rules of 240 subresources and wildcards, by a key with one verb more': async system => {
    const resources = [...many(239, index => `*/part-${index}`), 'things']
    const create = async (name: string, count: number) => {
      const scope = (verbs: readonly string[]) => ({
        rules: many(count, at => ({ verbs, resources: [{ group: `g${at}`, resources }] })),
      })
      const { ask } = await user(system, name, { rules: [...scope(['get', 'list']).rules, { verbs: ['create'] }] })
      return () => must(ask('POST', `${ours}/ownedaccesskeys?dryRun=All`, { spec: { scope: scope(['get']) } }))
    }
    return (await judge(await create('half', 97), await create('whole', 194))).problem
  },
  'the first request with a key of 195 rules with 240 resources': async system => {
    const rules = (count: number, set: string) =>
      many(count, at => ({ resources: [{ resources: many(240, index => `${set}-${at}-${index}/*`) }] }))
    // The server remembers what it knows about a scope, so each request has its own key.
    const first = async (count: number) => {
      const keys: User[] = []
      for (let turn = 0; turn < 6; turn++)
        keys.push(await user(system, `u${count}-${turn}`, { rules: rules(count, `s${turn}`) }))
      let turn = 0
      return () => must((keys[turn++] as User).ask('GET', `${ours}/teams`))
    }
    return (await judge(await first(97), await first(195))).problem
  },
  'a token for one verb less than a key with 195 rules of 240 verbs': async system => {
    const create = async (name: string, count: number) => {
      const scope = (verbs: readonly string[]) => ({
        rules: many(count, at => ({ verbs: [...verbs, `verb-of-${at}`] })),
      })
      const { ask } = await user(system, name, scope(words(240)))
      return () => answered(ask('POST', tokens, { spec: { scope: scope(words(239)) } }))
    }
    return (await judge(await create('half', 97), await create('whole', 195))).problem
  },
  'a token for one project less than a key with 195 roles of 240 projects': async system => {
    const create = async (name: string, count: number) => {
      const scope = (projects: readonly string[]) => ({
        roles: many(count, at => ({ role: 'platform-cli', projects: [...projects, `project-of-${at}`] })),
      })
      const { ask } = await user(system, name, scope(words(240)))
      return () => answered(ask('POST', tokens, { spec: { scope: scope(words(239)) } }))
    }
    return (await judge(await create('half', 97), await create('whole', 195))).problem
  },
}

const tokens = `${ours}/directclusterendpointtokens`

/** The token is within the scope of the key. The server may reject it because the comparison would take too long. */
async function answered(asked: Promise<{ readonly code: number; readonly text: string }>): Promise<void> {
  const { code, text } = await asked
  if (code !== 201 && code !== 403) throw new Error(`${code}: ${text.slice(0, 500)}`)
}

/** Resources of one group, distinct for each `set`. */
const things = (set: number, count: number) => ({
  group: 'example.com',
  resources: many(count, at => `thing-${at}/part-${set}`),
})

const listRules = ({ ask }: User) => {
  const reviews = '/kubernetes/management/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
  return must(ask('POST', reviews, { spec: { namespace: 'default' } }))
}

// Why a request is allowed or denied, and who can make it. The evaluator that decides requests answers.

import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { kinds } from '../../kinds/index.ts'
import { useSession } from '../app/session.tsx'
import { whyCommand } from '../data/commands.ts'
import { type Attributes, type Explanation, explain } from '../data/permission.ts'
import { accessText } from '../text/access.tsx'
import { text } from '../text/common.ts'
import { Button } from '../ui/button.tsx'
import { SelectField, TextField } from '../ui/fields.tsx'
import { Card, Columns, Command, ErrorState, Facts, Loading, Note, Page, Pill } from '../ui/parts.tsx'
import { factsOf } from './who.ts'
import style from './why.module.css'

type Search = Partial<Attributes> & { readonly user?: string; readonly who?: string }

const resources = kinds.filter(({ served }) => served).map(({ plural, group }) => ({ plural, group }))
const groupOf = (resource: string) => resources.find(({ plural }) => plural === resource)?.group ?? ''
const singularOf = (plural = '') => kinds.find(kind => kind.plural === plural)?.singular ?? plural
const verbs = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'bind',
  'escalate',
  'impersonate',
  '*',
]

export function WhyPage() {
  const search = useSearch({ strict: false }) as Search
  const { verb, resource, user } = search
  const who = search.who === 'true'
  const session = useSession()
  const subject = user || session.user
  const isAsked = verb !== undefined && resource !== undefined
  const target = [search.namespace, search.name].filter(Boolean).join('/')
  const what =
    `${search.name ? singularOf(resource) : resource}${search.subresource ? `/${search.subresource}` : ''} ${target}`.trim()
  const title = !isAsked ? text.whyPage : who ? accessText.whoCanDo(verb, what) : accessText.mayDo(subject, verb, what)
  return (
    <Page title={title} sub={accessText.about}>
      <Question key={JSON.stringify(search)} search={search} />
      {isAsked && (who ? <WhoAnswer search={search} /> : <WhyAnswer search={search} />)}
      {isAsked && <Command>{whyCommand({ ...search, who })}</Command>}
    </Page>
  )
}

function Question({ search }: { search: Search }) {
  const navigate = useNavigate()
  const [form, setForm] = useState({
    user: search.user ?? '',
    verb: search.verb ?? 'get',
    resource: search.resource ?? 'teams',
    namespace: search.namespace ?? '',
    name: search.name ?? '',
  })
  const set = (field: keyof typeof form) => (value: string) => setForm({ ...form, [field]: value })
  const ask = (who: boolean) => {
    const group = groupOf(form.resource)
    const { user, ...asked } = { ...form, group }
    const filled = Object.fromEntries(Object.entries(asked).filter(([key, value]) => value !== '' || key === 'group'))
    void navigate({
      to: '/access/why',
      search: {
        ...filled,
        ...(search.subresource && search.resource === form.resource ? { subresource: search.subresource } : {}),
        ...(who ? { who: 'true' } : user ? { user } : {}),
      },
    })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    ask(false)
  }
  return (
    <form className={style.form} onSubmit={submit}>
      <TextField label={accessText.user} value={form.user} onChange={set('user')} help={accessText.emptyIsYou} />
      <SelectField
        label={accessText.verb}
        value={form.verb}
        onChange={set('verb')}
        options={[...new Set([form.verb, ...verbs])]}
      />
      <SelectField
        label={accessText.resource}
        value={form.resource}
        onChange={set('resource')}
        options={resources.map(({ plural }) => plural)}
      />
      <TextField label={accessText.namespace} value={form.namespace} onChange={set('namespace')} />
      <TextField label={accessText.name} value={form.name} onChange={set('name')} help={accessText.emptyIsAny} />
      <div className={style.modes}>
        <Button type="submit" look="primary">
          {accessText.askWhy}
        </Button>
        <Button onPress={() => ask(true)}>{accessText.whoCan}</Button>
      </div>
    </form>
  )
}

const attributes = ({ verb = '', resource = '', group, subresource, namespace, name }: Search): Attributes => ({
  verb,
  group: group ?? groupOf(resource),
  resource,
  ...(subresource ? { subresource } : {}),
  ...(namespace ? { namespace } : {}),
  ...(name ? { name } : {}),
})

function useExplanation(search: Search) {
  return useQuery({
    queryKey: ['why', search],
    queryFn: () =>
      explain(attributes(search), search.who === 'true' ? { whoCan: true } : search.user ? { user: search.user } : {}),
  })
}

function WhyAnswer({ search }: { search: Search }) {
  const { data, error, isPending } = useExplanation(search)
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const { allowed = false, steps = [], nearMisses = [] } = data.status
  return (
    <Columns
      side={
        <>
          <Card title={accessText.answer}>
            <p>{allowed ? <Pill tone="ok">{accessText.yes}</Pill> : <Pill tone="bad">{accessText.no}</Pill>}</p>
            {data.status.reason && <p>{data.status.reason}</p>}
          </Card>
          {nearMisses.length > 0 && (
            <Card title={accessText.nearMisses}>
              <ul>
                {nearMisses.map(miss => (
                  <li key={miss}>{miss}</li>
                ))}
              </ul>
            </Card>
          )}
          {!allowed && <Advice search={search} />}
        </>
      }
    >
      <Card title={accessText.steps}>
        <Steps steps={steps} isAllowed={allowed} />
      </Card>
    </Columns>
  )
}

const Steps = ({ steps, isAllowed }: { steps: NonNullable<Explanation['status']['steps']>; isAllowed: boolean }) => (
  <ol className={style.steps}>
    {steps.map((step, index) => {
      const isDenial = !isAllowed && index === steps.length - 1
      return (
        <li key={step} data-denied={isDenial || undefined}>
          <span aria-hidden>{isDenial ? '✕' : '✓'}</span>
          <span>{step}</span>
        </li>
      )
    })}
  </ol>
)

/** The smallest change that would allow the request. */
function Advice({ search: { verb = '', resource = '', name, namespace, user } }: { search: Search }) {
  const session = useSession()
  const who = user || session.user
  const isShared = resource === 'sharedsecrets' || resource === 'projectsecrets' || resource === 'teams'
  return (
    <Note>
      <strong>{accessText.remedy}</strong>
      <span>
        {isShared && name
          ? accessText.addAccess(verb, who, namespace ? `${namespace}/${name}` : name)
          : accessText.bindRole(verb, who, resource)}
      </span>
    </Note>
  )
}

function WhoAnswer({ search }: { search: Search }) {
  const { data, error, isPending } = useExplanation(search)
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const who = factsOf(data.status.who)
  return (
    <Card title={accessText.subjects(who.length)}>
      <Facts of={who} />
    </Card>
  )
}

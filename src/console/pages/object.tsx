// The page of one object of any kind: overview, the tabs of its kind, access and YAML.

import { Link, lazyRouteComponent, useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import type { Kind } from '../../api/kind.ts'
import type { Json, Ref, Resource } from '../../api/object.ts'
import { deleteCommand, getCommand } from '../data/commands.ts'
import { useObject } from '../data/object.ts'
import { attributesOf } from '../data/permission.ts'
import { listPath, objectPath, oneOf } from '../data/places.ts'
import { server } from '../data/server.ts'
import { text } from '../text/common.ts'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { TextField } from '../ui/fields.tsx'
import { Card, Columns, Command, ErrorState, Facts, Loading, Note, Page, problemOf, Stack, Tabs } from '../ui/parts.tsx'
import { Conditions, readyPill } from './conditions.tsx'
import { kindTabs } from './kind-tabs.tsx'
import { MetadataCard } from './object-cards.tsx'
import type { ObjectTab, TabProps } from './tab.ts'
import { Value } from './value.tsx'

/** After an upgrade of the server, the file of a tab has another name. Then the page loads again, once. */
const YamlTab = lazyRouteComponent(() => import('./yaml-tab.tsx'), 'YamlTab')
const EventsTab = lazyRouteComponent(() => import('./events-tab.tsx'), 'EventsTab')
const AccessTab = lazyRouteComponent(() => import('./access-tab.tsx'), 'AccessTab')

type ObjectPageProps = { readonly kind: Kind; readonly namespace: string; readonly name: string; readonly tab: string }

export function ObjectPage({ kind, namespace, name, tab }: ObjectPageProps) {
  const at = { namespace, name }
  const { object, error, isLoading, isGone } = useObject(kind, at)
  const { first, tabs: own, Actions } = kindTabs(kind)
  const tabs: readonly ObjectTab[] = [
    first ?? { name: 'overview', label: text.tabs.overview, Content: Overview },
    ...own,
    { name: 'access', label: text.tabs.access, Content: AccessTab },
    { name: 'events', label: text.tabs.events, Content: EventsTab },
    { name: 'yaml', label: text.tabs.yaml, Content: YamlTab },
  ]
  const current = tabs.find(one => one.name === tab) ?? tabs[0]
  if (isLoading) return <Loading />
  if (!object)
    return (
      <ErrorState error={error} isPage>
        {problemOf(error).code === 403 ? (
          <Link to="/access/why" search={{ ...attributesOf({ verb: 'get', kind, ...at }) }}>
            {text.explain}
          </Link>
        ) : (
          <Link to="/audit" search={{ resource: kind.plural, name, ...(namespace ? { namespace } : {}) }}>
            {text.whatHappened}
          </Link>
        )}
      </ErrorState>
    )
  const { displayName } = (object.spec ?? {}) as { readonly displayName?: string }
  const props = { kind, at, object }
  return (
    <Page
      title={displayName || name}
      state={readyPill(object)}
      sub={<code>{kind.namespaced ? `${namespace}/${name}` : name}</code>}
      actions={
        <>
          {Actions && <Actions {...props} />}
          {kind.verbs.includes('delete') && <DeleteButton kind={kind} at={at} object={object} />}
        </>
      }
    >
      {isGone && <Note tone="warn">{text.gone}</Note>}
      {error !== null && !isGone && <Note tone="warn">{problemOf(error).message}</Note>}
      <Tabs
        current={current?.name ?? ''}
        tabs={tabs.map(({ name: tabName, label }, index) => ({
          name: tabName,
          label,
          to: objectPath(kind, at, index === 0 ? '' : tabName),
        }))}
      />
      <Suspense fallback={<Loading />}>{current && <current.Content {...props} />}</Suspense>
      <Command>{getCommand(kind, at, current?.name === 'yaml')}</Command>
    </Page>
  )
}

function Overview({ kind, object }: TabProps) {
  const { spec = {}, status = {} } = object
  const { displayName: _, ...fields } = spec as { readonly [field: string]: Json }
  const { conditions: __, observedGeneration: ___, ...observed } = status as { readonly [field: string]: Json }
  const other = Object.entries(object).filter(
    ([key]) => !['apiVersion', 'kind', 'metadata', 'spec', 'status'].includes(key),
  )
  return (
    <Columns
      side={
        <>
          <Conditions object={object} />
          <MetadataCard object={object} />
        </>
      }
    >
      <Card title={text.settings}>
        <Facts
          of={[...Object.entries(fields), ...other].map(([field, value]) => [
            field,
            <Value key={field} value={value} schema={kind.spec?.properties?.[field] ?? kind.fields[field]} />,
          ])}
        />
      </Card>
      {Object.keys(observed).length > 0 && (
        <Card title={text.observed}>
          <Facts
            of={Object.entries(observed).map(([field, value]) => [
              field,
              <Value key={field} value={value} schema={kind.status?.properties?.[field]} />,
            ])}
          />
        </Card>
      )}
    </Columns>
  )
}

/** The object is deleted only if it is still the one on the page. */
function DeleteButton({ kind, at, object }: { kind: Kind; at: Ref; object: Resource }) {
  const [isOpen, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [problem, setProblem] = useState('')
  const navigate = useNavigate()
  const open = () => {
    setTyped('')
    setProblem('')
    setOpen(true)
  }
  const remove = async () => {
    try {
      const { uid } = object.metadata
      await server.delete(kind, at, uid ? { preconditions: { uid } } : {})
      await navigate({ to: listPath(kind) })
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <>
      <ActionButton look="danger" action={{ verb: 'delete', kind, ...at }} onPress={open}>
        {text.delete}
      </ActionButton>
      <Modal title={text.deleteQuestion(oneOf(kind), at.name)} isOpen={isOpen} onClose={() => setOpen(false)}>
        <p>{text.deleteAdvice}</p>
        <TextField label={at.name} value={typed} onChange={setTyped} isMono />
        {problem && <Note tone="bad">{problem}</Note>}
        <Stack>
          <Command>{deleteCommand(kind, at)}</Command>
        </Stack>
        <DialogButtons>
          <Button onPress={() => setOpen(false)}>{text.cancel}</Button>
          <Button look="danger" isDisabled={typed !== at.name} onPress={() => remove()}>
            {text.delete}
          </Button>
        </DialogButtons>
      </Modal>
    </>
  )
}

// The managers of the fields of an object: who manages which, and whose fields an edit changes.

import { useId } from 'react'
import { fieldName, type Manager } from '../editor/owners.ts'
import { fieldManager } from '../editor/save.ts'
import { editorText } from '../text/editor.tsx'
import { Ago, Card, Note } from '../ui/parts.tsx'
import style from './field-managers.module.css'

/** Of each manager. */
const maxShown = 30

const nameOf = ({ name }: Manager) => (name === fieldManager ? editorText.thisConsole : name || editorText.unnamed)

function shortened(fields: Manager['fields']): readonly string[] {
  const shown = fields.slice(0, maxShown).map(fieldName)
  return fields.length > maxShown ? [...shown, editorText.moreFields(fields.length - maxShown)] : shown
}

const keyOf = ({ name, isApplied, time }: Manager) => `${name} ${isApplied} ${time}`

export const ManagersCard = ({ managers }: { managers: readonly Manager[] }) =>
  managers.length > 0 && (
    <Card title={editorText.managers}>
      {managers.map(manager => (
        <Fields key={keyOf(manager)} manager={manager} />
      ))}
    </Card>
  )

function Fields({ manager }: { manager: Manager }) {
  const id = useId()
  return (
    <div className={style.manager}>
      <h3 id={id}>{nameOf(manager)}</h3>
      <p>
        {manager.isApplied ? editorText.applied : editorText.updated} <Ago at={manager.time} />
      </p>
      <ul aria-labelledby={id}>
        {shortened(manager.fields).map(field => (
          <li key={field}>
            <code>{field}</code>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Before an edit is saved: the managers whose fields it changes. */
export const AffectedManagers = ({ managers }: { managers: readonly Manager[] }) =>
  managers.length > 0 && (
    <Note tone="warn">
      {managers.map(manager => (
        <span key={keyOf(manager)} role="status">
          {(manager.isApplied ? editorText.affectsApplier : editorText.affectsUpdater)(
            nameOf(manager),
            shortened(manager.fields).join(', '),
          )}
        </span>
      ))}
    </Note>
  )

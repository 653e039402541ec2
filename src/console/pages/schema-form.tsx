// A form for any object, made from the schema of its kind. A new kind needs no form of its own.

import { useState } from 'react'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { Schema } from '../../api/schema.ts'
import { isEqual } from '../editor/difference.ts'
import { text } from '../text/common.ts'
import { editorText } from '../text/editor.tsx'
import { isAcronym } from '../text/fields.ts'
import { Button } from '../ui/button.tsx'
import { SelectField, TextField } from '../ui/fields.tsx'
import style from './schema-form.module.css'

type FormProps = {
  readonly schema: Schema
  readonly value: JsonObject
  readonly onChange: (value: JsonObject) => void
  /** Problems by dotted path. */
  readonly problems: ReadonlyMap<string, string>
  readonly path: string
}

export function SchemaForm({ schema, value, onChange, problems, path }: FormProps) {
  const fields = Object.entries(schema.properties ?? {}).filter(
    ([, field]) => !field.deprecated && !field['x-internal'],
  )
  return (
    <div className={style.form}>
      {fields.map(([name, field]) => (
        <Field
          key={name}
          name={name}
          schema={field}
          value={value[name]}
          isRequired={schema.required?.includes(name) ?? false}
          problems={problems}
          path={`${path}.${name}`}
          onChange={next => onChange(withField(value, name, next))}
        />
      ))}
    </div>
  )
}

function withField(object: JsonObject, name: string, value: Json | undefined): JsonObject {
  const { [name]: _, ...others } = object
  return value === undefined ? others : { ...others, [name]: value }
}

type FieldProps = {
  readonly name: string
  readonly schema: Schema
  readonly value: Json | undefined
  readonly isRequired: boolean
  readonly problems: ReadonlyMap<string, string>
  readonly path: string
  readonly onChange: (value: Json | undefined) => void
}

/** "displayName" → "Display name", "ttl" → "TTL". */
const labelOf = (name: string) => {
  if (isAcronym(name)) return name.toUpperCase()
  const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function Field({ name, schema, value, isRequired, problems, path, onChange }: FieldProps) {
  const label = labelOf(name)
  const help = schema.description
  if (schema.enum)
    return (
      <SelectField
        label={label}
        help={help}
        value={String(value ?? schema.default ?? '')}
        options={schema.enum}
        onChange={onChange}
      />
    )
  if (schema.type === 'boolean')
    return (
      <label>
        <input
          type="checkbox"
          checked={value === true}
          onChange={event => onChange(event.currentTarget.checked || undefined)}
        />{' '}
        {label} <span className={style.help}>{help}</span>
      </label>
    )
  if (schema.type === 'integer')
    return (
      <TextField
        label={label}
        help={help}
        type="number"
        isRequired={isRequired}
        problem={problems.get(path)}
        value={value === undefined ? '' : String(value)}
        onChange={typed => onChange(typed === '' ? undefined : Number(typed))}
      />
    )
  if (schema.type === 'array') return <ListField {...{ name, schema, value, isRequired, problems, path, onChange }} />
  if (schema.type === 'object' && schema.properties)
    return (
      <details className={style.group} open={value !== undefined}>
        <summary>{label}</summary>
        <p className={style.help}>{help}</p>
        <SchemaForm
          schema={schema}
          value={isObject(value) ? value : {}}
          problems={problems}
          path={path}
          onChange={next => onChange(Object.keys(next).length ? next : undefined)}
        />
      </details>
    )
  if (schema.type === 'object') return <MapField {...{ name, schema, value, isRequired, problems, path, onChange }} />
  return (
    <TextField
      label={label}
      help={help}
      isRequired={isRequired}
      problem={problems.get(path)}
      value={String(value ?? '')}
      onChange={typed => onChange(typed === '' ? undefined : typed)}
    />
  )
}

function ListField({ name, schema, value, problems, path, onChange }: FieldProps) {
  const items = Array.isArray(value) ? (value as readonly Json[]) : []
  const inner = schema.items ?? {}
  const set = (index: number, next: Json | undefined) =>
    onChange(next === undefined ? items.toSpliced(index, 1) : items.toSpliced(index, 1, next))
  return (
    <fieldset className={style.group}>
      <legend>{labelOf(name)}</legend>
      <p className={style.help}>{schema.description}</p>
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items of a list have no identity
        <div key={index} className={style.row}>
          <Field
            name={editorText.item(labelOf(name), index + 1)}
            schema={{ ...inner, description: '' }}
            value={item}
            isRequired={false}
            problems={problems}
            path={`${path}[${index}]`}
            onChange={next => set(index, next ?? (inner.type === 'object' ? {} : ''))}
          />
          <Button
            look="quiet"
            aria-label={text.removeNamed(editorText.item(labelOf(name), index + 1))}
            onPress={() => set(index, undefined)}
          >
            {text.remove}
          </Button>
        </div>
      ))}
      <div>
        <Button onPress={() => onChange([...items, inner.type === 'object' ? {} : ''])}>{text.add}</Button>
      </div>
    </fieldset>
  )
}

type Entry = readonly [key: string, value: Json]

/** While somebody types "username", its key is "user" for a moment. A key that exists must not lose its value then. */
function MapField({ name, schema, value, onChange }: FieldProps) {
  const [typed, setTyped] = useState<readonly Entry[]>([])
  const given = isObject(value) ? value : {}
  const entries = isEqual(Object.fromEntries(typed), given) ? typed : Object.entries(given)
  const setAll = (next: readonly Entry[]) => {
    setTyped(next)
    onChange(Object.fromEntries(next))
  }
  const set = (index: number, key: string, value: string) => setAll(entries.toSpliced(index, 1, [key, value]))
  const isTwice = (index: number) => entries.some(([key], at) => at < index && key === entries[index]?.[0])
  return (
    <fieldset className={style.group}>
      <legend>{labelOf(name)}</legend>
      <p className={style.help}>{schema.description}</p>
      {entries.map(([key, one], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the key of an entry changes while somebody types it
        <div key={index} className={style.row}>
          <TextField
            label={editorText.key}
            value={key}
            onChange={next => set(index, next, String(one))}
            problem={isTwice(index) ? editorText.keyExists : ''}
            isMono
          />
          <TextField label={editorText.value} value={String(one)} onChange={next => set(index, key, next)} isMono />
          <Button look="quiet" aria-label={text.removeNamed(key)} onPress={() => setAll(entries.toSpliced(index, 1))}>
            {text.remove}
          </Button>
        </div>
      ))}
      <div>
        <Button onPress={() => setAll([...entries, ['', '']])}>{text.add}</Button>
      </div>
    </fieldset>
  )
}

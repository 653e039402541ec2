// Form fields with a label, help and an error.

import { useId } from 'react'
import { FieldError, Input, Label, TextField as RawTextField, Text } from 'react-aria-components'
import { text } from '../text/common.ts'
import style from './fields.module.css'

type TextFieldProps = {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly help?: string | undefined
  readonly problem?: string | undefined
  readonly isMono?: boolean
  readonly isRequired?: boolean
  readonly type?: 'text' | 'password' | 'number' | 'datetime-local'
}

export function TextField({ label, value, onChange, help, problem, isMono = false, ...rest }: TextFieldProps) {
  return (
    <RawTextField
      className={`${style.field} ${isMono ? style.mono : ''}`}
      value={value}
      onChange={onChange}
      isInvalid={problem !== undefined && problem !== ''}
      autoComplete="off"
      {...rest}
    >
      <Label>{label}</Label>
      <Input {...(rest.type === 'datetime-local' ? { step: 1 } : {})} />
      {help && (
        <Text slot="description" className={style.help ?? ''}>
          {help}
        </Text>
      )}
      <FieldError className={style.error ?? ''}>{problem}</FieldError>
    </RawTextField>
  )
}

type SelectFieldProps = {
  readonly label: string
  readonly value: string
  readonly options: readonly string[]
  readonly onChange: (value: string) => void
  readonly help?: string | undefined
}

/** The select of the browser: fast with thousands of options, and right on phones. */
export function SelectField({ label, value, options, onChange, help }: SelectFieldProps) {
  const id = useId()
  return (
    <div className={style.field}>
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={event => onChange(event.currentTarget.value)}>
        {value === '' && <option value="">{text.choose}</option>}
        {options.map(option => (
          <option key={option}>{option}</option>
        ))}
      </select>
      {help && <span className={style.help}>{help}</span>}
    </div>
  )
}

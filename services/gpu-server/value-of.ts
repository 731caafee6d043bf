import type { EnvironmentVariable } from '../settings/env-variable.ts'
import { SettingsError } from '../settings/settings.ts'

/** The value of a variable, or its default; null: neither. Throws SettingsError. */
export function valueOf<T>(
  env: Readonly<Record<string, string | undefined>>,
  variable: EnvironmentVariable<T>,
): T | null {
  const text = env[variable.name] || variable.byDefault
  if (text === null) return null
  const value = variable.read(text)
  if (value === undefined) throw new SettingsError(variable.name, text, variable.range)
  return value
}

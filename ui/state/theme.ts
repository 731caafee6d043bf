/** Light, dark, or the system setting; kept in this browser. */
import { createRoot, createSignal } from 'solid-js'

export type Theme = 'system' | 'light' | 'dark'
const KEY = 'headroom-theme'
const THEMES: readonly Theme[] = ['system', 'light', 'dark']

// Never equal to itself: charts must be redrawn when the system switches between light and dark.
const [theme, setTheme] = createRoot(() => createSignal<Theme>(stored(), { equals: false }))
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme(theme()))
apply(theme())

export { theme }

export function chooseTheme(next: Theme): void {
  localStorage.setItem(KEY, next)
  setTheme(next)
  apply(next)
}

export function nextTheme(): void {
  chooseTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] as Theme)
}

function stored(): Theme {
  const value = localStorage.getItem(KEY)
  return THEMES.find((each) => each === value) ?? 'system'
}

function apply(value: Theme): void {
  if (value === 'system') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.setAttribute('data-theme', value)
}

/** The current time, updated once a second, for everything that shows an age. */
import { createRoot, createSignal, type Accessor } from 'solid-js'

const [read, write] = createRoot(() => createSignal(Date.now()))
setInterval(() => write(Date.now()), 1_000)

export const now: Accessor<number> = read

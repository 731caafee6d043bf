/** Layout of every page: navigation on the left in a fixed order; mode, freshness and help at the top. */
import { A, useLocation, useMatch, useNavigate } from '@solidjs/router'
import { createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js'
import { Dynamic } from 'solid-js/web'
import { usePath, useWorld } from '../api/world.ts'
import { seconds } from '../format/figures.ts'
import { now, useCluster } from '../state/cluster.tsx'
import { useDocumentTitle } from '../state/page-title.ts'
import { nextTheme, theme } from '../state/theme.ts'
import { Icon } from '../design/icon.tsx'
import type { IconName } from '../design/icon-names.ts'
import { Toasts } from '../design/toast.tsx'
import { Alarms } from './alarms.tsx'
import { PageFaults } from './lazy-page.tsx'
import { ControllersChip } from './controllers-chip.tsx'
import { createOverlays, type Overlays } from './overlays.ts'
import { ModeChip } from './mode-chip.tsx'
import { RangePicker } from './range-picker.tsx'
import { SearchField } from './search-field.tsx'
import styles from './shell.module.css'
import { SignIn } from './sign-in.tsx'
import { ZoneSwitch } from './zone-switch.tsx'

export interface Place {
  readonly path: string
  readonly name: string
  readonly icon?: IconName
  /** Key to press after `g`. */
  readonly key: string
  /** A session does not have this page. */
  readonly isLiveOnly?: boolean
}

const THEME_ICONS = { system: 'monitor', light: 'sun', dark: 'moon' } as const

const PLACES: readonly (readonly Place[])[] = [
  [
    { path: '/', name: 'Dashboard', icon: 'gauge', key: 'd' },
    { path: '/tasks', name: 'Tasks', icon: 'list-todo', key: 't' },
    { path: '/nodes', name: 'Nodes', icon: 'server', key: 'n' },
    { path: '/groups', name: 'Groups', icon: 'boxes', key: 'g' },
    { path: '/owners', name: 'Owners', icon: 'users', key: 'o' },
  ],
  [
    { path: '/planner', name: 'Planner', icon: 'chart-line', key: 'p', isLiveOnly: true },
    { path: '/simulator', name: 'Simulator', icon: 'flask-conical', key: 'm', isLiveOnly: true },
  ],
  [
    { path: '/events', name: 'Events', icon: 'scroll-text', key: 'e' },
    { path: '/settings', name: 'Settings', icon: 'settings-2', key: 's' },
  ],
]

export interface ShellProps {
  readonly children?: JSX.Element
  /** Additional pages of this cluster. */
  readonly own?: readonly Place[]
  /** Shown above every page. */
  readonly banner?: JSX.Element
  /** The session has ended and is replayed. */
  readonly isReplay?: boolean | undefined
}

export function Shell(props: ShellProps): JSX.Element {
  const path = usePath()
  const { mode } = useWorld()
  const { session } = useCluster()
  const places = (): readonly (readonly Place[])[] =>
    [
      props.own ?? [],
      ...PLACES.map((group) => group.filter(({ isLiveOnly }) => mode === 'live' || isLiveOnly !== true)),
    ].filter((group) => group.length > 0)
  const [isOpen, setOpen] = createSignal(false)
  const overlays = createOverlays()
  useKeys(() => places().flat(), overlays)
  const location = useLocation()
  useDocumentTitle(() => {
    const isShown = (place: Place): boolean =>
      place.path === '/' ? location.pathname === path('/') : location.pathname.startsWith(path(place.path))
    return places().flat().findLast(isShown)?.name ?? null
  })
  return (
    <div class={styles['shell']} data-mode={props.isReplay === true ? 'replay' : mode}>
      <a class={styles['skip']} href="#main">
        Skip to content
      </a>
      <TopBar
        onMenu={() => setOpen(!isOpen())}
        isOpen={isOpen()}
        isReplay={props.isReplay === true}
        overlays={overlays}
      />
      <nav
        id="navigation"
        aria-label="Pages"
        class={styles['nav']}
        classList={{ [styles['open'] as string]: isOpen() }}
      >
        <For each={places()}>
          {(group) => (
            <ul>
              <For each={group}>
                {(place) => (
                  <li>
                    <A
                      href={path(place.path)}
                      end={place.path === '/'}
                      onClick={() => setOpen(false)}
                      title={`g ${place.key}`}
                    >
                      <Icon of={place.icon ?? 'book-open'} />
                      {place.name}
                    </A>
                  </li>
                )}
              </For>
            </ul>
          )}
        </For>
        <Show when={mode !== 'live'}>
          <ul>
            <li>
              <A href="/simulator" end>
                <Icon of="log-out" />
                Exit session
              </A>
            </li>
          </ul>
        </Show>
      </nav>
      <main id="main" tabindex="-1" class={styles['main']}>
        <SignIn />
        {/* Without authentication every request would be rejected. */}
        <Show when={session.isLoaded() && !session.isSignInNeeded()}>
          {props.banner}
          <Alarms />
          <PageFaults>{props.children}</PageFaults>
        </Show>
      </main>
      <Toasts />
      {/* Without authentication nothing could be found. */}
      <Show when={session.isLoaded() && !session.isSignInNeeded() && overlays.open()}>
        {(component) => (
          <Dynamic
            component={component()}
            pages={places().flat()}
            typed={overlays.typed()}
            onFocus={overlays.focused}
            onClose={overlays.close}
          />
        )}
      </Show>
    </div>
  )
}

interface TopBarProps {
  readonly onMenu: () => void
  readonly isOpen: boolean
  readonly isReplay: boolean
  readonly overlays: Overlays
}

function TopBar(props: TopBarProps): JSX.Element {
  const { mode } = useWorld()
  const path = usePath()
  const { session } = useCluster()
  return (
    <header class={styles['top']}>
      <button
        class={styles['menu']}
        aria-expanded={props.isOpen}
        aria-controls="navigation"
        onClick={() => props.onMenu()}
      >
        Menu
      </button>
      <strong class={styles['brand']}>
        <Icon of="gauge" />
        Headroom
      </strong>
      <ModeChip isReplay={props.isReplay} />
      <ControllersChip />
      <Freshness isReplay={props.isReplay} />
      <Range />
      <span class={styles['spring']} />
      <Show when={session.body()?.caller?.name}>
        {(name) => (
          <span class={`${styles['who']} text`}>
            {name()} · {session.body()?.caller?.role}{' '}
            <Show when={mode === 'live'}>
              <button onClick={() => void session.signOut()}>Sign out</button>
            </Show>
          </span>
        )}
      </Show>
      <SearchField />
      <button
        title="Search everything (Ctrl K, ⌘ K)"
        aria-label="Find anything"
        onClick={() => props.overlays.show('palette')}
      >
        <Icon of="command" />
      </button>
      <A class="button" href={path('/glossary')} title="Glossary and keyboard shortcuts (?)">
        <Icon of="circle-question-mark" />
        <span class={styles['label']}>Help</span>
      </A>
      <ZoneSwitch />
      <button onClick={nextTheme} title={`Theme: ${theme()}`} aria-label={`Theme: ${theme()}`}>
        <For each={[theme()]}>{(each) => <Icon of={THEME_ICONS[each]} />}</For>
      </button>
    </header>
  )
}

/** Time range of the charts on the page, if there are any. */
function Range(): JSX.Element {
  const path = usePath()
  const { session } = useCluster()
  const dashboard = useMatch(() => path('/'))
  const node = useMatch(() => path('/nodes/:id'))
  return (
    <Show when={(dashboard() ?? node()) !== undefined && !session.isSignInNeeded()}>
      <RangePicker />
    </Show>
  )
}

/** Age from which data is called stale. */
const STALE_S = 10

function Freshness(props: { readonly isReplay: boolean }): JSX.Element {
  const { feed } = useCluster()
  const { mode } = useWorld()
  const age = (): number | null => {
    const at = feed.heardAt()
    return at === null ? null : Math.max(0, (now() - at) / 1000)
  }
  const words = (): string => {
    const since = age()
    if (feed.status() === 'refused') return 'Signed out'
    if (since === null || feed.status() === 'connecting')
      return feed.status() === 'reconnecting' ? 'Reconnecting' : 'Connecting…'
    if (feed.status() === 'reconnecting') return `Reconnecting · data ${seconds(since)} old`
    return since > STALE_S ? `Stale ${seconds(since)}` : `${kind()} · ${seconds(since)} ago`
  }
  const kind = (): string => (props.isReplay ? 'Connected' : mode === 'live' ? 'Live' : 'Simulated')
  return (
    <span class={styles['fresh']} data-status={feed.status()} role="status" aria-live="off" id="freshness">
      {words()}
    </span>
  )
}

/**
 * `g t` opens Tasks, and so on; `/` focuses the search field; `?` lists the keys; Ctrl K and ⌘ K open the
 * palette, also from a field.
 */
function useKeys(places: () => readonly Place[], overlays: Overlays): void {
  const navigate = useNavigate()
  const path = usePath()
  let isAfterG = false
  const onKey = (event: KeyboardEvent): void => {
    const { target } = event
    const isTyping =
      target instanceof HTMLElement &&
      (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    if (event.key.toLowerCase() === 'k' && event.ctrlKey !== event.metaKey && !event.altKey) {
      event.preventDefault()
      overlays.show('palette')
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    if (isAfterG) {
      isAfterG = false
      const place = places().find(({ key }) => key === event.key)
      if (place !== undefined) navigate(path(place.path))
    } else if (event.key === 'g') isAfterG = true
    else if (event.key === '?') overlays.show('keys')
    else if (event.key === '/') {
      const search = document.querySelector<HTMLInputElement>('input[type=search]')
      if (search !== null) {
        event.preventDefault()
        search.focus()
      }
    }
  }
  onMount(() => addEventListener('keydown', onKey))
  onCleanup(() => removeEventListener('keydown', onKey))
}

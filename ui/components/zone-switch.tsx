/** Switches all times of the page between the zone of this browser and UTC. */
import type { JSX } from 'solid-js'
import { ActionButton } from '../design/action-button.tsx'
import { localOffset } from '../format/clock.ts'
import { chooseZone, isZoneFixed, zone } from '../state/zone.ts'

export function ZoneSwitch(): JSX.Element {
  const words = (): string => (zone() === 'utc' ? 'UTC' : 'Local')
  return (
    <ActionButton
      label={`Times: ${zone() === 'utc' ? 'UTC' : `local, ${localOffset(Date.now())}`}`}
      whyNot={isZoneFixed() ? 'Virtual time is always shown in UTC.' : null}
      onClick={() => chooseZone(zone() === 'utc' ? 'local' : 'utc')}
    >
      {words()}
    </ActionButton>
  )
}

/** The profiles that ship with Keyturn, by the name that `preset` takes. */
import { airtable } from './presets/airtable.ts';
import { asana } from './presets/asana.ts';
import { atlassian } from './presets/atlassian.ts';
import { box } from './presets/box.ts';
import { calendly } from './presets/calendly.ts';
import { discord } from './presets/discord.ts';
import { dropbox } from './presets/dropbox.ts';
import { figma } from './presets/figma.ts';
import { github, githubApp } from './presets/github.ts';
import { gitlab } from './presets/gitlab.ts';
import { google } from './presets/google.ts';
import { hubspot } from './presets/hubspot.ts';
import { linear } from './presets/linear.ts';
import { microsoft } from './presets/microsoft.ts';
import { notion } from './presets/notion.ts';
import { quickbooks } from './presets/quickbooks.ts';
import { salesforce } from './presets/salesforce.ts';
import { shopify } from './presets/shopify.ts';
import { slack } from './presets/slack.ts';
import { spotify } from './presets/spotify.ts';
import { stripe } from './presets/stripe.ts';
import { xero } from './presets/xero.ts';
import { zendesk } from './presets/zendesk.ts';
import { zoom } from './presets/zoom.ts';
import type { ProfileInput } from './profile.ts';

export const PRESETS: Readonly<Record<string, ProfileInput>> = {
  airtable,
  asana,
  atlassian,
  box,
  calendly,
  discord,
  dropbox,
  figma,
  github,
  'github-app': githubApp,
  gitlab,
  google,
  hubspot,
  linear,
  microsoft,
  notion,
  quickbooks,
  salesforce,
  shopify,
  slack,
  spotify,
  stripe,
  xero,
  zendesk,
  zoom,
};

/**
 * The one style sheet. It is sent inside each page and allowed there by its hash, so it holds no value from
 * outside.
 *
 * System fonts and no images. Light and dark follow the person's settings, and so do contrast, forced colours
 * and motion. Meaning never rests on colour alone.
 */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #f5f3ee;
  --card: #fffefb;
  --ink: #1b2422;
  --soft: #535f5c;
  --line: #dfdbd0;
  --edge: #7d8784;
  --accent: #17484a;
  --accent-over: #0f3638;
  --on-accent: #ffffff;
  --brass: #8a5a0b;
  --brass-wash: #f7ecd4;
  --good: #1d6b3f;
  --good-wash: #e2f1e6;
  --bad: #a3271f;
  --bad-wash: #fae7e3;
  --code: #efece3;
  --shadow: 0 1px 2px rgb(40 36 20 / 6%), 0 12px 32px -12px rgb(40 36 20 / 14%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #121716;
    --card: #1a2120;
    --ink: #e9ece8;
    --soft: #a5b0ac;
    --line: #2f3937;
    --edge: #75827e;
    --accent: #8fd3cc;
    --accent-over: #b1e4de;
    --on-accent: #0c2322;
    --brass: #e8bf6d;
    --brass-wash: #362c17;
    --good: #86d3a1;
    --good-wash: #1b3325;
    --bad: #f4a59b;
    --bad-wash: #3d201d;
    --code: #262e2d;
    --shadow: none;
  }
}
@media (prefers-contrast: more) {
  :root { --soft: var(--ink); --line: var(--edge); }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0;
  min-height: 100vh;
  min-height: 100dvh;
  display: flex;
  flex-direction: column;
  align-items: center;
  padding: 1.25rem 1rem 1.5rem;
  background: var(--paper);
  color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
header, main, footer { width: 100%; max-width: 36rem; }
.wide header, .wide main, .wide footer { max-width: 46rem; }
header { padding: 0 .25rem 1rem; }
.brand {
  display: inline-flex;
  align-items: center;
  gap: .65rem;
  padding: .2rem .4rem .2rem 0;
  color: var(--ink);
  font-weight: 600;
  text-decoration: none;
}
.brand:hover span { text-decoration: underline; text-underline-offset: .2em; }
.mark { flex: none; color: var(--accent); }
.mark-lock, .mark-start { stroke: currentColor; }
.mark-key { fill: var(--brass); transform: rotate(60deg); transform-origin: 16px 16px; }
main {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 1rem;
  padding: 1.5rem 1.25rem;
  box-shadow: var(--shadow);
}
footer {
  display: flex;
  flex-wrap: wrap;
  justify-content: space-between;
  gap: .25rem 1.5rem;
  padding: 1rem .25rem 0;
  color: var(--soft);
  font-size: .875rem;
}
footer p { margin: 0; }
footer a { color: inherit; }
h1 {
  margin: 0 0 .75rem;
  font-size: 1.625rem;
  line-height: 1.2;
  font-weight: 650;
  letter-spacing: -.015em;
  text-wrap: balance;
}
h2 { margin: 0 0 .5rem; font-size: 1rem; line-height: 1.35; font-weight: 650; }
h3 { margin: 0 0 .25rem; font-size: .9375rem; font-weight: 650; }
p { margin: 0 0 .75rem; text-wrap: pretty; }
.lede { font-size: 1.0625rem; }
section { margin-top: 1.5rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
a { color: var(--accent); text-underline-offset: .2em; }
a:hover { text-decoration-thickness: 2px; }
code {
  padding: .1em .35em;
  border-radius: .3em;
  background: var(--code);
  color: var(--ink);
  font: .8125rem/1.4 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace;
}
.host { font-weight: 600; }
.hint { margin: .25rem 0 0; color: var(--soft); font-size: .875rem; line-height: 1.45; }
.optional { color: var(--soft); font-weight: 400; }
.tag {
  display: inline-block;
  padding: .05rem .5rem;
  border: 1px solid currentColor;
  border-radius: 1rem;
  color: var(--soft);
  font-size: .75rem;
  line-height: 1.5;
  font-weight: 600;
  white-space: nowrap;
}
.tag.warn, .tag.needs_sign_in { color: var(--brass); background: var(--brass-wash); }
.tag.active, .scopes .tag { color: var(--good); background: var(--good-wash); }
.facts { margin: 0; }
.facts > div { padding: .5rem 0; }
.facts > div + div { border-top: 1px solid var(--line); }
.facts > div:first-child { padding-top: 0; }
.facts > div:last-child { padding-bottom: 0; }
.facts dt { color: var(--soft); font-size: .875rem; }
.facts dd { margin: 0; font-weight: 500; }
.facts dd .hint, .facts dd .scopes, .facts dd > p { font-weight: 400; }
.facts dd > p:last-child { margin-bottom: 0; }
.facts dd > ul { margin: 0; padding: 0; list-style: none; }
.facts form { display: inline; }
ul.scopes, ol.steps, ul.plain { margin: 0; padding: 0; list-style: none; }
.scopes > li { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline;
  gap: .1rem .75rem; padding: .4rem 0; }
.scopes > li + li { border-top: 1px solid var(--line); }
.scopes > li > span { flex: 1 1 14rem; }
.facts .scopes > li:first-child { padding-top: 0; }
.steps { counter-reset: step; }
.steps > li { position: relative; padding: .2rem 0 .45rem 2.25rem; counter-increment: step; }
.steps > li::before {
  content: counter(step);
  position: absolute;
  left: 0;
  top: .2rem;
  width: 1.5rem;
  height: 1.5rem;
  border: 1.5px solid var(--accent);
  border-radius: 50%;
  color: var(--accent);
  font-size: .8125rem;
  line-height: 1.35rem;
  font-weight: 650;
  text-align: center;
}
.plain > li { position: relative; padding: .2rem 0 .2rem 1.25rem; }
.plain > li::before { content: ""; position: absolute; left: .25rem; top: .8rem; width: .4rem; height: .4rem;
  border-radius: 50%; background: var(--accent); }
.secrecy {
  display: flex;
  gap: .6rem;
  align-items: flex-start;
  margin: .75rem 0 0;
  padding: .7rem .85rem;
  border-radius: .6rem;
  background: var(--good-wash);
  font-size: .9375rem;
}
.padlock { flex: none; margin-top: .1rem; color: var(--good); }
.padlock * { stroke: currentColor; }
form { margin: 0; }
main > form { margin-top: 1.5rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; }
.buttons:empty { display: none; }
.button {
  display: inline-flex;
  align-items: center;
  justify-content: center;
  min-height: 2.875rem;
  max-width: 100%;
  padding: .55rem 1.25rem;
  border: 1.5px solid transparent;
  border-radius: .6rem;
  background: none;
  color: var(--ink);
  font: inherit;
  font-weight: 600;
  line-height: 1.3;
  text-align: center;
  text-decoration: none;
  cursor: pointer;
}
.button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.button.main:hover { background: var(--accent-over); border-color: var(--accent-over); }
.button.plain { border-color: var(--edge); }
.button.plain:hover { border-color: var(--ink); background: var(--code); }
.button.danger { border-color: var(--bad); background: var(--bad-wash); color: var(--bad); }
.button.danger:hover { border-color: var(--ink); }
.button.quiet {
  min-height: 1.75rem;
  padding: .1rem .4rem;
  border: 0;
  color: var(--accent);
  font-size: .9375rem;
  font-weight: 500;
  text-decoration: underline;
  text-underline-offset: .2em;
}
.button.quiet:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .35rem; }
.button:focus-visible { border-radius: .6rem; }
.lasts { margin: 1rem 0 0; color: var(--soft); font-size: .875rem; }
.choices { margin: 0; padding: 0; border: 0; min-width: 0; }
.choices legend { padding: 0; margin: 0 0 .5rem; font-weight: 650; }
.choice {
  position: relative; display: grid; grid-template-columns: auto 1fr; column-gap: .75rem; align-items: center;
  padding: .7rem .85rem; border: 1.5px solid var(--line); border-radius: .6rem; }
.choice + .choice { margin-top: .5rem; }
.choice:has(:checked) { border-color: var(--accent); }
/* Above the label, which covers the whole choice. */
.choice input {
  position: relative; z-index: 1; width: 1.15rem; height: 1.15rem; margin: 0; accent-color: var(--accent); }
.choice label { font-weight: 500; cursor: pointer; }
.choice label::after { content: ""; position: absolute; inset: 0; }
.choice .hint { grid-column: 2; margin: 0; }
.field { margin-top: 1.1rem; }
.field label { display: block; font-weight: 600; }
.field .hint { margin: .1rem 0 0; }
.field input {
  width: 100%;
  min-height: 2.875rem;
  margin-top: .4rem;
  padding: .5rem .75rem;
  border: 1.5px solid var(--edge);
  border-radius: .5rem;
  background: var(--card);
  color: var(--ink);
  font: 1rem/1.4 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace;
}
.field input[aria-invalid] { border-color: var(--bad); border-width: 2px; }
.error { margin: .25rem 0 0; color: var(--bad); font-size: .9375rem; font-weight: 500; }
.problems { margin: 1rem 0; padding: .85rem 1rem; border-left: 4px solid var(--bad); border-radius: .4rem;
  background: var(--bad-wash); }
.problems ul { margin: 0 0 .5rem; padding-left: 1.2rem; }
.problems p { margin: 0; }
.outcome .lede { margin-bottom: .75rem; }
.sign { display: block; margin: 0 0 1rem; }
.sign path { stroke: currentColor; }
.sign-good { color: var(--good); }
.sign-good circle { fill: var(--good-wash); }
.sign-note { color: var(--accent); }
.sign-note circle { fill: var(--code); }
.sign-stop { color: var(--brass); }
.sign-stop circle { fill: var(--brass-wash); }
.missing { margin-top: 1.25rem; }
.notice { margin: 0 0 1rem; padding: .7rem .85rem; border-left: 4px solid var(--good); border-radius: .4rem;
  background: var(--good-wash); }
.person { display: flex; flex-wrap: wrap; align-items: baseline; gap: .15rem .35rem; color: var(--soft); }
.person p { margin: 0; }
.person strong { color: var(--ink); }
.cards { margin: 1.25rem 0 0; padding: 0; list-style: none; }
.card { padding: 1.25rem 0; border-top: 1px solid var(--line); }
.card:last-child { padding-bottom: 0; }
.card-head {
  display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: .25rem 1rem;
  margin-bottom: .75rem; }
.card-head h2 { margin: 0; font-size: 1.125rem; }
.account { color: var(--soft); font-weight: 400; }
.waiting {
  margin: 0 0 .85rem; padding: .6rem .85rem .6rem 1.9rem; border-radius: .5rem;
  background: var(--brass-wash); }
.empty { margin-top: 1.25rem; padding: 2rem 1.25rem; border: 1.5px dashed var(--edge); border-radius: .75rem;
  text-align: center; }
.empty p { max-width: 28rem; margin: 0 auto; color: var(--soft); }
@media (max-width: 26rem) {
  .buttons .button, .buttons form { width: 100%; }
}
@media (min-width: 40rem) {
  body { padding: 3rem 1.5rem 2rem; }
  main { padding: 2.25rem 2.5rem; }
  h1 { font-size: 1.875rem; }
  .facts > div { display: grid; grid-template-columns: 9rem 1fr; column-gap: 1rem; }
  .facts dt { padding-top: .15rem; }
}
@media (prefers-reduced-motion: no-preference) {
  .button { transition: background-color .15s, border-color .15s; }
  .leaving .mark-key { animation: turn 1.2s cubic-bezier(.5, 0, .2, 1) 3 alternate; }
  @keyframes turn { from { transform: rotate(0); } to { transform: rotate(60deg); } }
}
@media (forced-colors: active) {
  .mark-lock, .mark-start, .sign path, .padlock * { stroke: CanvasText; }
  .mark-key { fill: CanvasText; }
  .sign circle { fill: none; stroke: CanvasText; }
  .button { border-color: ButtonText; }
  .choice:has(:checked) { border-color: Highlight; }
  .secrecy, .notice, .problems, .waiting { border: 1px solid CanvasText; }
  .plain > li::before { background: CanvasText; }
}
`;

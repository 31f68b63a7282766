// This page is the answer to a form with errors. Once it is left, going back to it loads the form
// again, in which the browser restores what was typed, instead of asking whether to send it again.

"use strict";

addEventListener("pagehide", () => {
  // A browser restores only what differs from the default.
  const fields = "input:is([type=text], [type=email], [type=tel], [type=date]), textarea";
  for (const field of document.querySelectorAll(fields)) {
    const typed = field.value;
    field.defaultValue = "";
    field.value = typed;
  }
  history.replaceState(null, "", location.href);
});
